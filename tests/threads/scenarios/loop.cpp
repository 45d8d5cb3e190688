// The hand-over of the lead: whoever waits gets its answer, one thread drives at a time, and somebody drives when
// something is expected.
#include HOLDFAST_SOURCE_UNDER_TEST

#include <boost/asio/post.hpp>
#include <vector>

#include "threads/registry.hpp"

namespace holdfast::explored {
namespace {

using namespace std::chrono_literals;
using api::loop;
using interleaving::require;

// An answer comes: a handler, run by whoever leads.
template <class Handler>
void comes(loop& where, Handler handler) {
    boost::asio::post(where.context(), handler);
}

void callers(unsigned count) {
    loop subject(0us);
    std::vector<int> running;
    for (unsigned i = 0; i < count; ++i) {
        running.push_back(interleaving::start([&] {
            loop::wait event;
            comes(subject, [&] { subject.end(event); });
            subject.until(event);
        }));
    }
    for (const int each : running) interleaving::join(each);
}

// The answers are read by one thread, whichever leads, in an order that is not that of the callers.
void answered_by_others() {
    loop subject(0us);
    loop::wait first;
    loop::wait second;
    const int one = interleaving::start([&] { subject.until(first); });
    const int other = interleaving::start([&] { subject.until(second); });
    comes(subject, [&] { subject.end(second); });
    comes(subject, [&] { subject.end(first); });
    interleaving::join(one);
    interleaving::join(other);
}

// A wait is ended by a thread that does not lead.
void ended_from_outside() {
    loop subject(0us);
    loop::wait first;
    loop::wait second;
    const int one = interleaving::start([&] { subject.until(first); });
    const int other = interleaving::start([&] {
        subject.until(second);
        loop::wait again;
        comes(subject, [&] { subject.end(again); });
        subject.until(again);
    });
    subject.end(first);
    subject.end(second);
    interleaving::join(one);
    interleaving::join(other);
}

// The wait of the next leader is over before its thread is awake; somebody else still waits.
void the_heir_does_not_wait_any_more() {
    loop subject(0us);
    loop::wait of_heir;
    const auto waits_for_an_answer = [&] {
        loop::wait event;
        comes(subject, [&] { subject.end(event); });
        subject.until(event);
    };
    const int leader = interleaving::start(waits_for_an_answer);
    const int heir = interleaving::start([&] { subject.until(of_heir); });
    const int other = interleaving::start(waits_for_an_answer);
    interleaving::join(leader);
    subject.end(of_heir);
    interleaving::join(heir);
    interleaving::join(other);
}

// Nobody waits for the answers of asynchronous operations.
void nobody_waits() {
    loop subject(0us);
    bool has_come = false;
    subject.expect_in_background();
    comes(subject, [&] {
        subject.expected_has_come();
        has_come = true;
    });
    interleaving::step_when([&] { return has_come; });
}

// The last caller has gone. A message, which nobody expects, is read after a while.
void a_message_comes() {
    loop subject(0us);
    bool has_come = false;
    const int caller = interleaving::start([&] {
        loop::wait event;
        comes(subject, [&] { subject.end(event); });
        subject.until(event);
    });
    interleaving::join(caller);
    comes(subject, [&] { has_come = true; });
    interleaving::step_when([&] { return has_come; });
}

// The callback thread stands in for the background thread, beside a caller.
void callback_thread() {
    loop subject(0us);
    loop::wait callbacks;
    const int stands_in = interleaving::start([&] { subject.stand_in(callbacks); });
    const int caller = interleaving::start([&] {
        loop::wait event;
        comes(subject, [&] { subject.end(event); });
        subject.until(event);
    });
    subject.expect_in_background();
    comes(subject, [&] {
        subject.expected_has_come();
        subject.end(callbacks);
    });
    interleaving::join(stands_in);
    interleaving::join(caller);
}

void glance_beside_a_caller() {
    loop subject(0us);
    bool is_written = false;
    const int caller = interleaving::start([&] {
        loop::wait event;
        comes(subject, [&] { subject.end(event); });
        subject.until(event);
    });
    comes(subject, [&] { is_written = true; });
    subject.glance();
    interleaving::join(caller);
    interleaving::step_when([&] { return is_written; });
}

const interleaving::registered here({
    {"loop", HOLDFAST_VARIANT, "two callers", [] { callers(2); }, 2},
    {"loop", HOLDFAST_VARIANT, "three callers", [] { callers(3); }, 0},
    {"loop", HOLDFAST_VARIANT, "answers in another order", answered_by_others, 2},
    {"loop", HOLDFAST_VARIANT, "waits that others end", ended_from_outside, 1},
    {"loop", HOLDFAST_VARIANT, "an heir that does not wait any more", the_heir_does_not_wait_any_more, 0},
    {"loop", HOLDFAST_VARIANT, "nobody waits", nobody_waits, 3},
    {"loop", HOLDFAST_VARIANT, "a message after the last caller", a_message_comes, 3},
    {"loop", HOLDFAST_VARIANT, "callback thread and caller", callback_thread, 1},
    {"loop", HOLDFAST_VARIANT, "a glance beside a caller", glance_beside_a_caller, 2},
});

}  // namespace
}  // namespace holdfast::explored
