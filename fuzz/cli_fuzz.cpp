// Any words, configuration and environment for the command `holdfast`: it understands them, or says clearly why not.
// Nothing runs and nothing is connected.
//
// The first byte chooses what the rest is: arguments, one on each line; a configuration file; or the environment, with
// what stands behind the first line break as arguments. The byte 1 stands for the beginning of a URL with a password,
// which no message may show.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/program.hpp"
#include "cli/commands/run_options.hpp"
#include "cli/server/config_file.hpp"
#include "cli/server/server_choice.hpp"
#include "redis/url/server_url.hpp"
#include "support/choices.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::cli;
using fuzz::require;

constexpr std::string_view password = "hunter2-xyzzy";
constexpr char begins_url = 1;

// What the program writes to its standard error and standard output meanwhile.
class captured_output {
public:
    captured_output() : old_buffer_(std::cout.rdbuf(out_.rdbuf())) {
        static const int file = ::memfd_create("messages", MFD_CLOEXEC);
        static const int standard_error = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
        file_ = file;
        standard_error_ = standard_error;
        if (::ftruncate(file_, 0) != 0 || ::lseek(file_, 0, SEEK_SET) != 0) std::abort();
        ::dup2(file_, STDERR_FILENO);
    }
    ~captured_output() { end(); }
    captured_output(const captured_output&) = delete;
    captured_output& operator=(const captured_output&) = delete;

    std::string end() {
        if (old_buffer_ == nullptr) return {};
        std::cout.rdbuf(std::exchange(old_buffer_, nullptr));
        ::dup2(standard_error_, STDERR_FILENO);
        std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
        if (::pread(file_, text.data(), text.size(), 0) < 0) std::abort();
        std::clog.clear();
        return text;
    }
    std::string printed() const { return out_.str(); }

private:
    std::ostringstream out_;
    std::streambuf* old_buffer_;
    int file_ = -1;
    int standard_error_ = -1;
};

std::string with_passwords(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == begins_url) {
            out.append("redis://someone:").append(password).append("@h");
        } else if (c != '\0') {
            out += c;
        }
    }
    return out;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(with_passwords(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

// A URL may name a file to be read.
bool names_a_file(std::string_view text) {
    const auto has = [text](std::string_view word) { return text.find(word) != text.npos; };
    return has("password_file") || has("file") || has("%");
}

// All that is derived from the options of `run` before anything is connected.
void evaluate(run_options options) {
    options.lock();
    options.wait_limit();
    options.lock_side();
    options.wanted_slots();
    options.link_options();
    options.lease_time();
    options.delay_time();
    options.lock_options();
    options.terms();
    options.command();
    if (!is_local(options.servers)) choose_servers(options.servers, options.wanted_notices(), local_start::never);
}

// As main() does it.
template <typename Work>
int told(Work work) {
    try {
        return work();
    } catch (const std::exception& why) {
        tell(why.what());
        return own_failure;
    }
}

// Thrown when all words are understood, in the place of running what they say.
struct understood {};

int understand(const std::vector<std::string>& words) {
    program subject(words);
    subject.app().parse_complete_callback([] { throw understood(); });
    try {
        return subject.run();
    } catch (const understood&) {
        return all_well;
    }
}

int understand_run(const std::vector<std::string>& words) {
    CLI::App app;
    run_options options;
    app.prefix_command();
    declare(app, options);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& why) {
        if (why.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return all_well;
        throw trouble(why.what());
    }
    options.words = command_words(std::nullopt, app.remaining());
    evaluate(options);
    return all_well;
}

void check(int status, const std::string& messages, const std::string& printed) {
    require(status == all_well || status == own_failure, "words are understood, or it is a failure of holdfast");
    require(status == all_well || messages.starts_with("holdfast: "), "a failure is told");
    require(messages.find(password) == messages.npos && printed.find(password) == printed.npos,
            "no message shows a password: " + messages);
}

void play_words(const std::vector<std::string>& words) {
    {
        captured_output output;
        const int status = told([&] { return understand(words); });
        const std::string messages = output.end();
        check(status, messages, output.printed());
    }
    captured_output output;
    const int status = told([&] { return understand_run(words); });
    const std::string messages = output.end();
    check(status, messages, output.printed());
}

void play_configuration(std::string_view bytes) {
    captured_output output;
    const std::string text = with_passwords(bytes);
    const int status = told([&] {
        const configuration found = parse_configuration(text, "holdfast.toml");
        for (const std::string& url : found.urls) {
            has_password(url);
            redis::parse_url(url);
        }
        return static_cast<int>(all_well);
    });
    check(status, output.end(), output.printed());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool begun = [] {
        ::setenv("HOLDFAST_CONFIG", "/dev/null", 1);
        ::setenv("HOLDFAST_URL", "redis://named", 1);
        return true;
    }();
    static_cast<void>(begun);
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    if (input.empty() || names_a_file(input) || input.find(password) != input.npos) return 0;
    const std::string_view rest = input.substr(1);
    switch (input[0] % 3) {
        case 0:
            play_words(lines_of(rest));
            break;
        case 1:
            play_configuration(rest);
            break;
        default: {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            ::setenv("HOLDFAST_URL", with_passwords(rest.substr(0, end)).c_str(), 1);
            ::setenv("HOLDFAST_MAX_LEASE", std::string(rest.substr(0, std::min<std::size_t>(end, 8))).c_str(), 1);
            play_words(lines_of(rest.substr(std::min(end + 1, rest.size()))));
            ::unsetenv("HOLDFAST_MAX_LEASE");
            ::setenv("HOLDFAST_URL", "redis://named", 1);
            break;
        }
    }
    return 0;
}
