#include "base/utf8.hpp"

#include <holdfast/trace.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>

namespace holdfast {
namespace {

constexpr std::size_t most_events = 1'000'000;

// Names are bytes. Of a name that is no UTF-8 each byte that is no ASCII is told by its value.
std::string in_quotes(std::string_view text) {
    const bool is_text = is_utf8(text);
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !is_text)) {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\u%04x", byte);
            result += code.data();
        } else {
            result += c;
        }
    }
    return result + "\"";
}

long long microseconds_of(std::chrono::system_clock::time_point when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count();
}

class trace_file {
public:
    explicit trace_file(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
        if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), path);
        std::fputs("[", file_);
    }
    // The form may end anywhere; with the bracket it is JSON.
    ~trace_file() {
        std::fputs("\n]\n", file_);
        std::fclose(file_);
    }
    trace_file(const trace_file&) = delete;
    trace_file& operator=(const trace_file&) = delete;

    void write(const trace_event& event) {
        const std::lock_guard guard(mutex_);
        if (written_ >= most_events) return;
        // Spans of one hold share a track; those of several overlap.
        const bool is_instant = event.what == trace_event::kind::renew || event.what == trace_event::kind::lost;
        put(event, is_instant ? 'n' : 'b', event.begin);
        if (!is_instant) put(event, 'e', event.end);
        std::fflush(file_);
        ++written_;
    }

private:
    void put(const trace_event& event, char phase, std::chrono::system_clock::time_point when) {
        const std::string lock = in_quotes(event.lock);
        std::string name = in_quotes(std::string(name_of(event.what)) + " " + event.lock);
        std::fprintf(file_,
                     "%s\n{\"name\":%s,\"cat\":\"lock\",\"ph\":\"%c\",\"ts\":%lld,\"pid\":%ld,\"tid\":0,\"id\":%s,"
                     "\"args\":{\"lock\":%s,\"token\":\"%llu\"}}",
                     is_first_ ? "" : ",", name.c_str(), phase, microseconds_of(when), static_cast<long>(::getpid()),
                     in_quotes(event.hold).c_str(), lock.c_str(), static_cast<unsigned long long>(event.token));
        is_first_ = false;
    }

    std::mutex mutex_;
    std::FILE* const file_;
    std::size_t written_ = 0;
    bool is_first_ = true;
};

}  // namespace

const char* name_of(trace_event::kind what) noexcept {
    constexpr std::array names{"acquire", "wait", "refused", "hold", "renew", "lost"};
    return names[static_cast<std::size_t>(what)];
}

std::function<void(const trace_event&)> trace_to(const std::string& path) {
    return [file = std::make_shared<trace_file>(path)](const trace_event& event) { file->write(event); };
}

}  // namespace holdfast
