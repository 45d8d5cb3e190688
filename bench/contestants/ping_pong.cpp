// The floor of handing over: two processes that wake each other by PUBLISH and do nothing else.
//
// Each of the two listens on a channel of its own and, when it hears something, stays "inside" for `section_us` and
// publishes to the other's. The visits it reports are those of a caller: entered when the message was there, left when
// PUBLISH was called; so the harness measures the gap as it does for a lock. Process 0 begins.

#include "bare_socket.hpp"
#include "contestants/contestant.hpp"
#include "redis/session/command_writer.hpp"

namespace holdfast::bench {
namespace {

class player {
public:
    explicit player(const settings& chosen)
        : first_(chosen.number("process") == 0),
          section_(chosen.number("section_us")),
          listening_(bare_socket::over_tcp(server_of_this_run())),
          calling_(bare_socket::over_tcp(server_of_this_run())),
          publish_(redis::encoded_command({"PUBLISH", first_ ? "pong" : "ping", "."})) {
        listening_.line(redis::encoded_command({"SUBSCRIBE", first_ ? "ping" : "pong"}));
        listening_.give_up_after(std::chrono::milliseconds(200));
    }

    diary play(double end) {
        diary seen;
        if (first_) calling_.line(publish_);
        while (now_us() < end) {
            // It is under way, or the other is inside, however long that takes on a machine that stalls: a second one
            // would be two at once. The other has listened since before it was ready.
            if (!listening_.hears_something()) continue;
            const double inside = now_us();
            pause_us(section_);
            const double leaving = now_us();
            calling_.line(publish_);
            seen.note(inside, inside, leaving, now_us());
        }
        while (listening_.hears_something()) continue;  // what is still under way belongs to no later slice
        return seen;
    }

private:
    bool first_;
    long section_;
    bare_socket listening_;
    bare_socket calling_;
    std::string publish_;
};

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    using namespace holdfast::bench;
    return compete(argc, argv, [](const settings& chosen) {
        player me(chosen);
        converse([&](double seconds) {
            const double cpu_before = processor_time_us();
            const double start = now_us();
            const std::vector<diary> seen{me.play(start + seconds * 1e6)};
            report_slice(seen, seconds * 1e6, processor_time_us() - cpu_before, true);
        });
    });
}
