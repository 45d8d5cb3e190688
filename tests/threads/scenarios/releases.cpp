// Releases that nobody waits for, in the section and on the loop: whoever is about to go waits for all of them.
#include HOLDFAST_SOURCE_UNDER_TEST

#include "api/runtime/loop.cpp"
#include "base/serial_section.cpp"

#include <boost/asio/post.hpp>
#include <vector>

#include "threads/registry.hpp"

namespace holdfast::explored {
namespace {

using namespace std::chrono_literals;
using api::loop;
using api::posted_releases;
using interleaving::require;

class section final : public serial_section {
    void settle() override {}
};

// The release goes out when its turn comes in the section; the answer is read by whoever leads.
class release final : public serial_task {
public:
    release(section& where, loop& driven, posted_releases& counted, unsigned& ended)
        : where_(where), loop_(driven), counted_(counted), ended_(ended) {}
    void run() override {
        boost::asio::post(loop_.context(), [this] {
            where_.enter_with([this] {
                ++ended_;
                counted_.end();
            });
        });
    }

private:
    section& where_;
    loop& loop_;
    posted_releases& counted_;
    unsigned& ended_;
};

// The core goes: its parts are gone when the wait is over and the loop is stopped.
void world(unsigned releasing_threads, unsigned beforehand) {
    unsigned ended = 0;
    const unsigned all = releasing_threads + beforehand;
    {
        section around;
        loop driven(0us);
        posted_releases counted(around, driven);
        std::vector<std::unique_ptr<release>> releases;
        for (unsigned i = 0; i < all; ++i) {
            releases.push_back(std::make_unique<release>(around, driven, counted, ended));
        }
        std::vector<int> running;
        for (unsigned i = 0; i < releasing_threads; ++i) {
            running.push_back(interleaving::start([&, i] {
                counted.begin();
                around.enter(*releases[i]);
            }));
        }
        for (unsigned i = releasing_threads; i < all; ++i) {
            counted.begin();
            around.enter(*releases[i]);
        }
        // Whoever releases has the core; the last one lets it go.
        for (const int each : running) interleaving::join(each);
        counted.wait(never, instant{});
        require(ended == all, "the wait is over when every release has ended");
        driven.stop();
    }
}

// The count falls to nothing and rises again while somebody waits.
void released_meanwhile() {
    unsigned ended = 0;
    section around;
    loop driven(0us);
    posted_releases counted(around, driven);
    release first(around, driven, counted, ended);
    release second(around, driven, counted, ended);
    counted.begin();
    const int other = interleaving::start([&] {
        counted.begin();
        around.enter(second);
    });
    around.enter(first);
    counted.wait(never, instant{});
    require(ended >= 1, "the wait is over when the releases that were under way have ended");
    interleaving::join(other);
    counted.wait(never, instant{});
    require(ended == 2, "the wait is over when every release has ended");
    driven.stop();
}

const interleaving::registered here({
    {"releases", HOLDFAST_VARIANT, "one release and the wait for it", [] { world(0, 1); }, 2},
    {"releases", HOLDFAST_VARIANT, "nothing to wait for", [] { world(0, 0); }, 3},
    {"releases", HOLDFAST_VARIANT, "two threads release, then the core goes", [] { world(2, 0); }, 1},
    {"releases", HOLDFAST_VARIANT, "one releases while another waits", released_meanwhile, 1},
});

}  // namespace
}  // namespace holdfast::explored
