// Sends what becomes of locks to OpenTelemetry, without its SDK: spans in OTLP's JSON form on stdout, for a collector:
//
//   ./otlp_trace redis://127.0.0.1:6379 |
//     curl -H 'Content-Type: application/json' --data-binary @- http://127.0.0.1:4318/v1/traces
//
// A program that uses the SDK starts and ends a span of its own in the callback instead: every event has its begin and
// its end, the name of the lock and the fencing token. With a second argument the metrics of the client go to
// that file, as Prometheus reads them.
#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Collects events; the client calls it from a thread of the library.
class otlp_spans {
public:
    void add(const holdfast::trace_event& event) {
        const std::lock_guard guard(mutex_);
        // One trace for each hold: its id, as 32 hexadecimal digits.
        const std::uint64_t hold = std::hash<std::string>{}(event.hold);
        spans_ += spans_.empty() ? "" : ",";
        spans_ += "{\"traceId\":\"" + hex(hold) + hex(~hold) + "\",\"spanId\":\"" + hex(hold + ++number_) +
                  "\",\"name\":\"holdfast " + holdfast::name_of(event.what) + "\",\"kind\":3,\"startTimeUnixNano\":\"" +
                  nanoseconds(event.begin) + "\",\"endTimeUnixNano\":\"" + nanoseconds(event.end) +
                  "\",\"attributes\":[" + attribute("lock.name", event.lock) + "," +
                  attribute("lock.token", std::to_string(event.token)) + "]}";
    }

    std::string request() const {
        return "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" + attribute("service.name", "otlp_trace") +
               "]},\"scopeSpans\":[{\"scope\":{\"name\":\"holdfast\"},\"spans\":[" + spans_ + "]}]}]}\n";
    }

private:
    static std::string hex(std::uint64_t number) {
        std::string digits(16, '0');
        for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, number >>= 4U) {
            *digit = "0123456789abcdef"[number & 15U];
        }
        return digits;
    }
    static std::string nanoseconds(std::chrono::system_clock::time_point when) {
        return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
    }
    // The names of this program need no escapes; others' do.
    static std::string attribute(const std::string& key, const std::string& value) {
        return "{\"key\":\"" + key + "\",\"value\":{\"stringValue\":\"" + value + "\"}}";
    }

    std::mutex mutex_;
    std::string spans_;
    std::uint64_t number_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    otlp_spans spans;
    const auto figures = std::make_shared<holdfast::metrics>();
    {
        holdfast::client_options options;
        options.metrics = figures;
        options.trace = [&spans](const holdfast::trace_event& event) { spans.add(event); };
        holdfast::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379", options};
        holdfast::mutex stock{redis, "stock:1001"};
        std::vector<std::jthread> workers;
        for (int i = 0; i < 3; ++i) {
            workers.emplace_back([&stock] {
                const std::scoped_lock guard{stock};
                std::this_thread::sleep_for(5ms);
            });
        }
    }  // the client delivers all events before it is gone
    std::cout << spans.request();
    if (argc > 2) std::ofstream(argv[2]) << holdfast::prometheus_text(*figures);
}
