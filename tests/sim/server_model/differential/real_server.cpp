#include "server_model/differential/real_server.hpp"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace holdfast::sim {
namespace {

value to_value(const redisReply& reply) {
    const std::string text = reply.str == nullptr ? "" : std::string{reply.str, reply.len};
    switch (reply.type) {
        case REDIS_REPLY_STATUS:
            return value::make_status(text);
        case REDIS_REPLY_ERROR:
            return value::make_error(text);
        case REDIS_REPLY_INTEGER:
            return value::make_integer(reply.integer);
        case REDIS_REPLY_STRING:
            return value::make_bulk(text);
        case REDIS_REPLY_NIL:
            return value::make_nil();
        default:
            break;
    }
    std::vector<value> items;
    for (std::size_t i = 0; i < reply.elements; ++i) items.push_back(to_value(*reply.element[i]));
    return value::make_array(std::move(items));
}

// Child processes inherit it. The test has no other threads yet.
class environment_variable {
public:
    environment_variable(const char* name, const std::filesystem::path& content) : name_(name) {
        ::setenv(name, content.c_str(), 1);
    }
    ~environment_variable() { ::unsetenv(name_); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;

private:
    const char* name_;
};

std::atomic<std::int64_t>* map_clock(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(std::int64_t)) != 0) throw std::runtime_error("cannot make the clock");
    void* page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (page == MAP_FAILED) throw std::runtime_error("cannot map the clock");
    return static_cast<std::atomic<std::int64_t>*>(page);
}

}  // namespace

void raw_link::closer::operator()(redisContext* context) const {
    redisFree(context);
}

raw_link::raw_link(const std::string& unix_path) : context_(redisConnectUnix(unix_path.c_str())) {
    if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect to the real server");
}

void raw_link::append(const std::vector<std::string>& command) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto& word : command) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data());
}

value raw_link::read() {
    void* raw = nullptr;
    if (redisGetReply(context_.get(), &raw) != REDIS_OK) {
        throw std::runtime_error(std::string{"the real server is gone: "} + context_->errstr);
    }
    const auto reply = static_cast<redisReply*>(raw);
    value out = to_value(*reply);
    freeReplyObject(reply);
    return out;
}

value raw_link::call(const std::vector<std::string>& command) {
    append(command);
    return read();
}

real_server::real_server(const std::filesystem::path& preload, std::int64_t now_us)
    : clock_(map_clock(directory_.path() / "clock")) {
    set_time(now_us);
    const environment_variable library{"LD_PRELOAD", preload};
    const environment_variable clock{"HOLDFAST_SIM_CLOCK", directory_.path() / "clock"};
    testing::server_options options;
    options.tcp = false;
    options.unix_socket = true;
    options.config = {"enable-debug-command local"};
    server_.emplace(options);
    link_ = std::make_unique<raw_link>(unix_path());
    // The background sweep would change DBSIZE at unpredictable times.
    if (link_->call({"DEBUG", "SET-ACTIVE-EXPIRE", "0"}).is_error()) throw std::runtime_error("DEBUG is refused");
}

real_server::~real_server() {
    ::munmap(clock_, sizeof *clock_);
}

void real_server::move_to_clock(std::int64_t now_us) {
    const std::int64_t ahead_ms = now_us / 1000 - clock_->load() / 1000;
    std::vector<std::pair<std::string, std::int64_t>> ends;
    for (const value& key : link_->call({"KEYS", "*"}).items) {
        ends.emplace_back(key.text, link_->call({"PEXPIRETIME", key.text}).integer);
    }
    const auto shift = [&] {
        for (const auto& [key, end] : ends) {
            if (end > 0) link_->call({"PEXPIREAT", key, std::to_string(end + ahead_ms)});
        }
    };
    if (ahead_ms > 0) shift();  // no key may expire before it is shifted
    set_time(now_us);
    if (ahead_ms < 0) shift();
}

std::string real_server::contents(const std::string& key, const std::string& type) {
    std::string out;
    if (type == "string") return in_quotes(link_->call({"GET", key}).text);
    if (type == "zset") {
        const value all = link_->call({"ZRANGE", key, "0", "-1", "WITHSCORES"});
        for (std::size_t i = 0; i < all.items.size(); i += 2) {
            out += ' ' + in_quotes(all.items[i].text) + '@' + all.items[i + 1].text;
        }
        return out.substr(1);
    }
    std::vector<std::pair<std::string, std::string>> sorted;
    const bool is_hash = type == "hash";
    const value all = link_->call({is_hash ? "HGETALL" : "SMEMBERS", key});
    for (std::size_t i = 0; i < all.items.size(); i += is_hash ? 2 : 1) {
        sorted.emplace_back(all.items[i].text, is_hash ? all.items[i + 1].text : "");
    }
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [name, text] : sorted) out += ' ' + in_quotes(name) + (is_hash ? '=' + in_quotes(text) : "");
    return out.substr(1);
}

std::string real_server::dump() {
    std::vector<std::string> keys;
    for (const value& key : link_->call({"KEYS", "*"}).items) keys.push_back(key.text);
    std::sort(keys.begin(), keys.end());
    std::string out;
    for (const auto& key : keys) {
        const std::string type = link_->call({"TYPE", key}).text;
        const std::int64_t until = link_->call({"PEXPIRETIME", key}).integer;
        out += in_quotes(key) + ' ' + type + (until < 0 ? " forever " : " until " + std::to_string(until) + ' ');
        out += contents(key, type) + '\n';
    }
    return out;
}

listener::listener(const std::string& unix_path, std::uint64_t id) : link_(unix_path), id_(id) {}

void listener::subscribe(std::string_view channel, channel_kind kind) {
    link_.call({kind == channel_kind::plain ? "SUBSCRIBE" : "SSUBSCRIBE", std::string{channel}});
}

std::vector<message> listener::heard() {
    std::vector<message> out;
    link_.append({"PING"});
    while (true) {
        const value push = link_.read();
        if (push.items.at(0).text == "pong") return out;
        const auto kind = push.items.at(0).text == "smessage" ? channel_kind::sharded : channel_kind::plain;
        out.push_back({id_, kind, push.items.at(1).text, push.items.at(2).text});
    }
}

}  // namespace holdfast::sim
