#include "cli/web/http_server.hpp"

#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <sstream>
#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

const std::map<int, const char*> reasons{{200, "OK"},
                                         {202, "Accepted"},
                                         {400, "Bad Request"},
                                         {401, "Unauthorized"},
                                         {403, "Forbidden"},
                                         {404, "Not Found"},
                                         {405, "Method Not Allowed"},
                                         {409, "Conflict"},
                                         {413, "Content Too Large"},
                                         {421, "Misdirected Request"},
                                         {431, "Request Header Fields Too Large"},
                                         {503, "Service Unavailable"}};

// Host and port.
std::pair<std::string, std::string> split(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
    const bool number = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
    if (host.empty() || !number) {
        throw trouble(fmt::format("--listen {}: write HOST:PORT, as in 127.0.0.1:9421 or [::1]:9421", address));
    }
    return {host, port};
}

std::string trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return {};
    return std::string(text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin));
}

std::string in_small_letters(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return text;
}

http_answer refusal(int status, const char* why) {
    return {.status = status, .body = why};
}

// The lines of the head behind the first one. False: they make no sense, or could mean two things.
bool read_fields(std::istream& lines, std::map<std::string, std::string>& fields) {
    for (std::string line; std::getline(lines, line) && line != "\r";) {
        const std::size_t colon = line.find(':');
        if (colon == 0 || colon == std::string::npos || line[colon - 1] == ' ') return false;
        const std::string name = in_small_letters(line.substr(0, colon));
        std::string value = trimmed(std::string_view(line).substr(colon + 1));
        if (!fields.emplace(name, std::move(value)).second && (name == "host" || name == "content-length"))
            return false;
    }
    return !fields.contains("transfer-encoding");
}

}  // namespace

std::string_view http_request::field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

// Alive as long as one of its handlers is; a stream reads, and so lives, until it is hung up.
class http_server::connection final : public http_stream, public std::enable_shared_from_this<connection> {
public:
    connection(tcp::socket socket, std::shared_ptr<shared_state> shared)
        : socket_(std::move(socket)), timer_(socket_.get_executor()), shared_(std::move(shared)) {
        ++shared_->connections;
    }
    ~connection() { hang_up(); }

    void start() {
        limit_talk();
        asio::async_read_until(
            socket_, asio::dynamic_buffer(input_, shared_->limits.head_bytes), "\r\n\r\n",
            [self = shared_from_this()](error_code why, std::size_t head) { self->was_asked(why, head); });
    }

    bool is_open() const override { return socket_.is_open(); }

    void send(std::shared_ptr<const std::string> text) override {
        if (!is_open()) return;
        // What waits already counts, not this piece: one that is longer than the limit must not be refused for ever.
        if (unread_bytes_ > shared_->limits.unread_bytes) return hang_up();
        unread_bytes_ += text->size();
        unread_.push_back(std::move(text));
        if (unread_.size() == 1) write_next();
    }

private:
    // What takes longer is ended.
    void limit_talk() {
        timer_.expires_after(shared_->limits.talk);
        timer_.async_wait([weak = weak_from_this()](error_code why) {
            if (const auto self = weak.lock(); self && !why) self->hang_up();
        });
    }

    void hang_up() {
        if (!socket_.is_open()) return;
        error_code ignored;
        socket_.shutdown(tcp::socket::shutdown_both, ignored);
        socket_.close(ignored);
        timer_.cancel();
        --shared_->connections;
        if (is_stream_) --shared_->streams;
    }

    void was_asked(error_code why, std::size_t head) {
        if (why == asio::error::not_found) return answer(refusal(431, "too long\n"));
        if (why) return hang_up();
        std::istringstream lines(input_.substr(0, head));
        input_.erase(0, head);
        std::string line;
        std::string target;
        std::string version;
        std::getline(lines, line);
        std::istringstream(line) >> asked_.method >> target >> version;
        if (!version.starts_with("HTTP/1.")) return answer(refusal(400, "this is HTTP/1.1\n"));
        if (!read_fields(lines, asked_.fields)) return answer(refusal(400, "this head makes no sense\n"));
        const std::size_t mark = target.find('?');
        asked_.path = target.substr(0, mark);
        if (mark != std::string::npos) asked_.query = target.substr(mark + 1);
        const bool may_post = shared_->limits.body_bytes > 0;
        if (asked_.method != "GET" && asked_.method != "HEAD" && !(may_post && asked_.method == "POST")) {
            http_answer no = refusal(405, may_post ? "only GET, HEAD and POST\n" : "only GET and HEAD\n");
            no.fields["Allow"] = may_post ? "GET, HEAD, POST" : "GET, HEAD";
            return answer(no);
        }
        read_body();
    }

    void read_body() {
        if (asked_.method != "POST") return answer(shared_->handle(asked_));
        const std::string_view told = asked_.field("content-length");
        std::size_t length = 0;
        const auto [end, bad] = std::from_chars(told.data(), told.data() + told.size(), length);
        if (told.empty() || bad != std::errc{} || end != told.data() + told.size()) {
            return answer(refusal(400, "content-length is missing\n"));
        }
        if (length > shared_->limits.body_bytes) return answer(refusal(413, "too long\n"));
        const std::size_t missing = length - std::min(length, input_.size());
        asio::async_read(socket_, asio::dynamic_buffer(input_), asio::transfer_exactly(missing),
                         [self = shared_from_this(), length](error_code why, std::size_t) {
                             if (why) return self->hang_up();
                             self->asked_.body = self->input_.substr(0, length);
                             self->answer(self->shared_->handle(self->asked_));
                         });
    }

    void answer(const http_answer& what) {
        if (what.listener && shared_->streams >= shared_->limits.streams) {
            return answer(refusal(503, "too many listen already; close a page\n"));
        }
        const bool without_body = asked_.method == "HEAD";
        std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\n", what.status,
                                       reasons.at(what.status), what.type);
        for (const auto& [name, value] : what.fields) head += fmt::format("{}: {}\r\n", name, value);
        if (!what.listener) head += fmt::format("Content-Length: {}\r\n", what.body.size());
        head += "Connection: close\r\n\r\n";
        if (!without_body) head += what.body;
        is_last_ = !what.listener || without_body;
        if (!is_last_) {
            is_stream_ = true;
            ++shared_->streams;
            notice_end();
        }
        send(std::make_shared<const std::string>(std::move(head)));
        if (!is_last_) what.listener(shared_from_this());
    }

    void write_next() {
        limit_talk();
        asio::async_write(socket_, asio::buffer(*unread_.front()),
                          [self = shared_from_this()](error_code why, std::size_t) {
                              if (why || !self->is_open()) return self->hang_up();
                              self->was_written();
                          });
    }

    void was_written() {
        timer_.cancel();
        unread_bytes_ -= unread_.front()->size();
        unread_.pop_front();
        if (!unread_.empty()) return write_next();
        if (is_last_) hang_up();
    }

    // Whoever listens sends nothing more: what comes is the end.
    void notice_end() {
        socket_.async_read_some(asio::buffer(ignored_), [self = shared_from_this()](error_code why, std::size_t) {
            why ? self->hang_up() : self->notice_end();
        });
    }

    tcp::socket socket_;
    asio::steady_timer timer_;
    std::shared_ptr<shared_state> shared_;
    std::string input_;
    http_request asked_;
    std::deque<std::shared_ptr<const std::string>> unread_;
    std::size_t unread_bytes_ = 0;
    std::array<char, 64> ignored_{};
    bool is_stream_ = false;
    bool is_last_ = true;  // nothing follows what is unread
};

http_server::http_server(asio::io_context& context, const std::string& address, handler handle, http_limits limits)
    : acceptor_(context), shared_(std::make_shared<shared_state>(shared_state{std::move(handle), limits})) {
    const auto [host, port] = split(address);
    try {
        const tcp::endpoint local = tcp::resolver(context).resolve(host, port, tcp::resolver::passive)->endpoint();
        acceptor_.open(local.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(local);
        acceptor_.listen();
    } catch (const boost::system::system_error& why) {
        throw trouble(fmt::format("--listen {}: {}", address, why.code().message()));
    }
    accept_next();
}

http_server::~http_server() = default;

std::string http_server::url() const {
    std::ostringstream text;
    text << "http://" << acceptor_.local_endpoint();
    return text.str();
}

void http_server::stop() {
    error_code ignored;
    acceptor_.close(ignored);
}

void http_server::accept_next() {
    acceptor_.async_accept([this](error_code why, tcp::socket socket) {
        if (!acceptor_.is_open()) return;
        if (!why && shared_->connections < shared_->limits.connections) {
            std::make_shared<connection>(std::move(socket), shared_)->start();
        }
        accept_next();
    });
}

}  // namespace holdfast::cli
