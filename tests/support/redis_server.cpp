// The public interface; redis_process runs the process.
#include "support/redis_server.hpp"

#include <charconv>
#include <stdexcept>
#include <utility>

#include "support/redis_process.hpp"

namespace holdfast::testing {
namespace {

// RFC 3986: escapes everything but the unreserved characters, so any password survives in a URL.
std::string percent_encoded(std::string_view text) {
    constexpr std::string_view unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        if (unreserved.find(c) != std::string_view::npos) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return out;
}

std::string credentials(const server_options& options) {
    return options.requirepass.empty() ? "" : ":" + percent_encoded(options.requirepass) + "@";
}

// The text between `name` at the beginning of a line and the end of that line.
std::string field_of(std::string_view info, const std::string& name) {
    std::size_t at = info.starts_with(name) ? 0 : info.find("\n" + name);
    if (at == std::string_view::npos) return {};
    at = info.find(name, at) + name.size();
    return std::string{info.substr(at, info.find_first_of("\r\n", at) - at)};
}

}  // namespace

redis_server::redis_server(server_options options) : process_{std::make_unique<process>(std::move(options))} {}
redis_server::~redis_server() = default;
redis_server::redis_server(redis_server&&) noexcept = default;
redis_server& redis_server::operator=(redis_server&&) noexcept = default;

int redis_server::port() const {
    if (!process_->options().tcp) throw std::logic_error{"this server has no TCP port"};
    return process_->port();
}

int redis_server::tls_port() const {
    if (!process_->options().tls) throw std::logic_error{"this server has no TLS port"};
    return process_->tls_port();
}

std::string redis_server::unix_path() const {
    if (!process_->options().unix_socket) throw std::logic_error{"this server offers no unix socket"};
    return process_->socket_path().string();
}

pid_t redis_server::pid() const {
    return process_->pid();
}

const std::filesystem::path& redis_server::directory() const {
    return process_->directory();
}

const tls_material& redis_server::tls() const {
    if (!process_->options().tls) throw std::logic_error{"this server has no TLS port"};
    return process_->tls();
}

std::string redis_server::url() const {
    return "redis://" + credentials(process_->options()) + "127.0.0.1:" + std::to_string(port());
}

std::string redis_server::unix_url() const {
    return "unix://" + credentials(process_->options()) + unix_path();
}

std::string redis_server::tls_url() const {
    return "rediss://" + credentials(process_->options()) + "localhost:" + std::to_string(tls_port());
}

bool redis_server::running() const {
    return process_->running();
}

void redis_server::kill() {
    process_->kill();
}

void redis_server::stop() {
    process_->stop();
}

void redis_server::pause() {
    process_->pause();
}

void redis_server::resume() {
    process_->resume();
}

void redis_server::restart(data what) {
    if (what == data::keep && !process_->options().persistent) {
        throw std::logic_error{"only a persistent server keeps its data"};
    }
    if (process_->running()) process_->stop();
    if (what == data::lose) process_->remove_data();
    process_->start_again();
}

redis_reply redis_server::call(const std::vector<std::string>& arguments) {
    return process_->call(arguments);
}

void redis_server::set_clock_ahead(std::chrono::microseconds by) {
    process_->set_clock_ahead(by);
}

std::int64_t redis_server::clock_us() {
    const redis_reply told = call({"TIME"});
    return std::stoll(told.elements.at(0).text) * 1'000'000 + std::stoll(told.elements.at(1).text);
}

std::int64_t redis_server::command_calls(std::string_view name) {
    const std::string text = field_of(call({"INFO", "commandstats"}).text, "cmdstat_" + std::string{name} + ":calls=");
    std::int64_t calls = 0;
    std::from_chars(text.data(), text.data() + text.size(), calls);
    return calls;
}

void redis_server::reset_stats() {
    const redis_reply reply = call({"CONFIG", "RESETSTAT"});
    if (reply.is_error()) throw std::runtime_error{reply.text};
}

std::string redis_server::info(std::string_view section, std::string_view field) {
    const std::string text = call({"INFO", std::string{section}}).text;
    const std::string name = std::string{field} + ":";
    if (!text.starts_with(name) && text.find("\n" + name) == std::string::npos) {
        throw std::out_of_range{"INFO " + std::string{section} + " has no field " + std::string{field}};
    }
    return field_of(text, name);
}

std::string redis_server::log_tail() const {
    return process_->log_tail();
}

}  // namespace holdfast::testing
