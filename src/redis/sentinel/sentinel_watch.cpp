#include "redis/sentinel/sentinel_watch.hpp"

#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"
#include "redis/url/url_text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr const char* channel = "+switch-master";

// [host, port]
std::optional<server_address> read_address(const reply_view& reply) {
    if (!reply.is_aggregate() || reply.size() != 2) return std::nullopt;
    return told_address(reply[0].text(), reply[1].to_integer());
}

}  // namespace

// One sentinel: its link, its questions and its last answer.
class sentinel_watch::sentinel final : public session_listener {
public:
    enum class standing {
        unknown,  // no answer and no failure yet
        asked,    // a question is in flight
        answered,
        failed
    };

    explicit sentinel(sentinel_watch& whole) : whole_(whole), address_question_(*this), record_question_(*this) {
        address_question_.set_payload(encoded_command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", whole.primary_}));
        record_question_.set_payload(encoded_command({"SENTINEL", "MASTER", whole.primary_}));
    }

    void attach(session& link) {
        link_ = &link;
        link.subscribe(channel);
    }

    standing how() const noexcept { return how_; }
    const opinion& says() const noexcept { return *says_; }
    // Why its answer does not count.
    failure why() const {
        if (how_ == standing::answered) {
            return {errc::no_primary, link_->settings().display() + " is out of date: it names " +
                                          to_text(says_->primary.address) + ", which was replaced"};
        }
        return link_->has_failed() ? link_->last_failure() : why_;
    }

    bool may_still_answer() const noexcept { return how_ == standing::unknown || how_ == standing::asked; }

    // The record is asked for first. So its epoch may be older than the address, never newer, and an old address is not
    // believed because of a new epoch. A sentinel without a link is asked when the link is up.
    void ask(instant now) {
        if (!link_->up() || !is_sentinel_ || how_ == standing::asked) return;
        how_ = standing::asked;
        ask_again_ = false;
        record_ = {};
        ask_at_ = now + whole_.ask_interval_;
        link_->submit(record_question_, now);
        link_->submit(address_question_, now);
    }

    // A sentinel that was never reached counts as heard.
    void note_failed_attempt() {
        if (how_ != standing::unknown || !link_->has_failed()) return;
        how_ = standing::failed;
        why_ = link_->last_failure();
    }
    void ask_if_due(instant now) {
        if (now >= deadline()) ask(now);
    }
    instant deadline() const noexcept {
        return link_->up() && is_sentinel_ && how_ != standing::asked ? ask_at_ : never;
    }

private:
    class question final : public command {
    public:
        explicit question(sentinel& asks) : asks_(asks) {}
        void on_reply(const reply_view& reply, instant now) override { asks_.on_reply(*this, reply, now); }
        void on_failure(const failure&, instant) override {}  // on_link_down() handles it

    private:
        sentinel& asks_;
    };

    // The record of the primary, as far as the sentinel tells it.
    struct record {
        server_address address;
        std::optional<std::uint64_t> epoch;
        std::optional<std::chrono::milliseconds> since;
    };

    void on_link_up(const server_facts& facts, instant now) override {
        is_sentinel_ = facts.mode == "sentinel";
        if (!is_sentinel_) return fail({errc::no_primary, link_->settings().display() + " is no sentinel"}, now);
        how_ = standing::unknown;
        ask(now);
    }
    void on_link_down(const failure& why, instant now) override {
        for (question* each : {&record_question_, &address_question_}) link_->withdraw(*each);  // if not written yet
        fail(why, now);
    }
    // The sentinel is asked at intervals anyway.
    void on_subscription_refused(const failure&, instant) override {}
    // [message, channel, "name old-host old-port new-host new-port"]
    void on_push(const reply_view& message, instant now) override {
        if (message.size() < 3 || message[1].text() != channel) return;
        if (!message[2].text().starts_with(whole_.primary_ + " ")) return;
        ask_again_ = how_ == standing::asked;  // the answer in flight may be older
        ask(now);
    }

    void on_reply(const question& which, const reply_view& reply, instant now) {
        if (&which == &record_question_) return read_record(reply);
        if (ask_again_) {
            how_ = standing::unknown;
            return ask(now);
        }
        if (reply.is_error()) return fail(classify_error(reply.text(), link_->settings().display()), now);
        auto address = read_address(reply);
        if (!address) {
            return fail(
                {errc::no_primary, link_->settings().display() + " knows no primary \"" + whole_.primary_ + "\""}, now);
        }
        how_ = standing::answered;
        // During a failover the address is that of the new primary already, while the record is still of the old one.
        const auto since = record_.address == *address ? record_.since : std::nullopt;
        says_ = opinion{{std::move(*address), since}, record_.epoch};
        whole_.answered(*this, now);
    }

    void read_record(const reply_view& reply) {
        if (!reply.is_aggregate()) return;
        for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
            const std::string_view field = reply[i].text();
            if (field == "ip") record_.address.host = reply[i + 1].text();
            const auto value = reply[i + 1].to_integer();
            if (!value || *value < 0) continue;
            if (field == "port") record_.address.port = static_cast<std::uint16_t>(*value);
            if (field == "config-epoch") record_.epoch = static_cast<std::uint64_t>(*value);
            if (field == "role-reported-time") record_.since = std::chrono::milliseconds(*value);
        }
    }

    void fail(failure why, instant now) {
        how_ = standing::failed;
        why_ = std::move(why);
        whole_.decide(now);
    }

    sentinel_watch& whole_;
    session* link_ = nullptr;
    question address_question_;
    question record_question_;
    standing how_ = standing::unknown;
    bool is_sentinel_ = false;
    bool ask_again_ = false;  // an announcement came after the last question
    instant ask_at_ = never;
    record record_;  // of the question in flight
    std::optional<opinion> says_;
    failure why_{errc::unreachable, ""};
};

sentinel_watch::sentinel_watch(const server_settings& settings, primary_listener& listener)
    : display_(settings.display()),
      primary_(settings.sentinels->primary),
      ask_interval_(std::max(settings.health_interval * 4 / 5, std::chrono::milliseconds(1))),
      listener_(listener) {
    for (std::size_t i = 0; i < settings.sentinels->addresses.size(); ++i) {
        sentinels_.push_back(std::make_unique<sentinel>(*this));
    }
}

sentinel_watch::~sentinel_watch() = default;

session_listener& sentinel_watch::listener(std::size_t which) noexcept {
    return *sentinels_[which];
}

void sentinel_watch::attach(std::size_t which, session& link) {
    sentinels_[which]->attach(link);
}

void sentinel_watch::seek(instant now) {
    for (const auto& each : sentinels_) each->ask(now);
    seeking_ = true;
}

void sentinel_watch::on_timer(instant now) {
    for (const auto& each : sentinels_) each->note_failed_attempt();
    decide(now);
    for (const auto& each : sentinels_) each->ask_if_due(now);
}

instant sentinel_watch::deadline() const noexcept {
    instant earliest = never;
    for (const auto& each : sentinels_) earliest = std::min(earliest, each->deadline());
    return earliest;
}

bool sentinel_watch::is_up_to_date(const sentinel& one) const noexcept {
    return one.how() == sentinel::standing::answered && !is_outdated(one.says());
}

bool sentinel_watch::all_are_heard() const noexcept {
    return std::ranges::none_of(sentinels_, [](const auto& each) { return each->may_still_answer(); });
}

// The latest answer, if a majority answers and all answers are of an older epoch than that of the known primary: the
// sentinels were reset. A single such answer means only that its sentinel is out of date.
const sentinel_watch::opinion* sentinel_watch::restarted_epochs() const noexcept {
    const opinion* latest = nullptr;
    std::size_t answers = 0;
    for (const auto& each : sentinels_) {
        if (each->how() != sentinel::standing::answered) continue;
        if (!is_outdated(each->says())) return nullptr;
        if (latest == nullptr || each->says().epoch > latest->epoch) latest = &each->says();
        ++answers;
    }
    return answers > sentinels_.size() / 2 && all_are_heard() ? latest : nullptr;
}

std::size_t sentinel_watch::agreeing(const server_address& address) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        sentinels_, [&](const auto& each) { return is_up_to_date(*each) && each->says().primary.address == address; }));
}

// A majority says so, or all sentinels that answer.
bool sentinel_watch::is_agreed(const server_address& address) const noexcept {
    const auto says_otherwise = [&](const auto& each) {
        return is_up_to_date(*each) && each->says().primary.address != address;
    };
    return agreeing(address) > sentinels_.size() / 2 ||
           (all_are_heard() && std::ranges::none_of(sentinels_, says_otherwise));
}

void sentinel_watch::answered(const sentinel& by, instant now) {
    if (seeking_) return decide(now);
    if (const opinion* const restarted = restarted_epochs()) {
        if (told_ != restarted->primary.address || told_none_) return tell(*restarted, now);
        epoch_ = restarted->epoch;
    }
    const opinion& says = by.says();
    if (is_outdated(says)) return;
    if (told_ == says.primary.address && !told_none_) {
        if (!is_later(says)) return;
        epoch_ = says.epoch;
        listener_.on_later_take_over(says.primary, now);
    } else if (is_later(says) || told_none_ || is_agreed(says.primary.address)) {
        tell(says, now);
    }
}

void sentinel_watch::decide(instant now) {
    if (!seeking_) return;
    const opinion* elsewhere = nullptr;
    const opinion* same = nullptr;
    const auto rank = [this](const opinion& one) { return std::pair(one.epoch, agreeing(one.primary.address)); };
    for (const auto& each : sentinels_) {
        if (!is_up_to_date(*each)) continue;
        const opinion*& best = told_ == each->says().primary.address ? same : elsewhere;
        if (best == nullptr || rank(each->says()) > rank(*best)) best = &each->says();
    }
    const bool is_news = elsewhere != nullptr && (!told_ || is_later(*elsewhere));
    if (is_news || (elsewhere != nullptr && is_agreed(elsewhere->primary.address))) return tell(*elsewhere, now);
    if (same != nullptr && is_agreed(same->primary.address)) return tell(*same, now);
    if (!all_are_heard()) return;
    if (elsewhere != nullptr) return tell(*elsewhere, now);
    if (same != nullptr) return tell(*same, now);
    if (const opinion* const restarted = restarted_epochs()) return tell(*restarted, now);
    seeking_ = false;
    told_none_ = true;
    listener_.on_no_primary(why_none(), now);
}

void sentinel_watch::tell(const opinion& what, instant now) {
    const known_primary told = what.primary;
    told_ = told.address;
    if (what.epoch) epoch_ = what.epoch;
    seeking_ = told_none_ = false;
    listener_.on_primary(told, now);
}

// All failures, under the most useful code: first that a sentinel does not know the primary, then failures that may
// pass. The result is permanent only if all failures are.
failure sentinel_watch::why_none() const {
    const auto rank = [](errc code) { return code == errc::no_primary ? 0 : is_permanent(code) ? 2 : 1; };
    failure whole{sentinels_.front()->why().code, display_ + ":"};
    for (const auto& each : sentinels_) {
        const failure why = each->why();
        if (rank(why.code) < rank(whole.code)) whole.code = why.code;
        whole.detail += (each == sentinels_.front() ? " " : "; ") + why.detail;
    }
    return whole;
}

}  // namespace holdfast::redis
