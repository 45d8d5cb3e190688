#include "api/operations/asynchronous.hpp"

#include "api/operations/blocking.hpp"
#include "base/race_detector.hpp"

#include <holdfast/detail/completion.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

namespace holdfast {
namespace api {
namespace {

sending expect(core& where) {
    const bool others_are_expected = where.loop().expect_in_background();
    const notifier::outlook here = notifier::what_follows();
    const bool is_alone =
        here == notifier::outlook::no_callback ? !others_are_expected : here != notifier::outlook::more_to_come;
    return is_alone ? sending::at_once : sending::with_others;
}

}  // namespace

refusal told_in_words(refusal why, const wire::lock_keys& lock, const core& where) {
    why.detail = describe_refusal("lock '" + std::string(lock.name()) + "'", where.display(), why);
    return why;
}

async_acquire::async_acquire(std::shared_ptr<core> where, engine::acquire_terms terms, mode kind,
                             std::unique_ptr<completion> handler)
    : acquire_operation(std::move(where), std::move(terms), face::wanted), kind_(kind), handler_(std::move(handler)) {}

async_acquire::async_acquire(std::shared_ptr<hold_face> target, engine::patience limit,
                             std::unique_ptr<completion> handler)
    : acquire_operation(std::move(target), limit), kind_(mode::exclusive), handler_(std::move(handler)) {}

void async_acquire::start(std::shared_ptr<core> where, engine::acquire_terms terms, std::stop_token stop,
                          refusal* why_not, std::unique_ptr<completion> handler) {
    const mode kind = terms.want == engine::access::shared ? mode::shared : mode::exclusive;
    auto told = why_not == nullptr ? nullptr : std::make_unique<told_refusal>(told_refusal{why_not, terms.keys});
    const auto made = std::allocate_shared<async_acquire>(recycling_allocator<async_acquire>(), std::move(where),
                                                          std::move(terms), kind, std::move(handler));
    made->told_ = std::move(told);
    begin(made, std::move(stop));
}

void async_acquire::start(std::shared_ptr<hold_face> target, engine::patience limit,
                          std::unique_ptr<completion> handler) {
    begin(std::make_shared<async_acquire>(std::move(target), limit, std::move(handler)), {});
}

void async_acquire::begin(const std::shared_ptr<async_acquire>& operation, std::stop_token stop) {
    operation->self_ = operation;
    const sending how = expect(operation->where());
    const auto canceller = [&operation] {
        return [weak = std::weak_ptr(operation)] {
            if (const auto live = weak.lock()) live->cancel(errc::cancelled);
        };
    };
    if (operation->handler_->can_be_cancelled()) operation->handler_->on_cancellation(canceller());
    if (stop.stop_possible()) operation->on_stop_.emplace(std::move(stop), canceller());
    operation->acquire_operation::start(how);
}

void async_acquire::cancel(errc why) {
    if (where().forked()) return;
    where().enter_with([live = shared_from_this(), why] { live->cancel_now(why); });
}

void async_acquire::finished() {
    const auto keep_alive = std::move(self_);
    on_stop_.reset();
    where().loop().expected_has_come();
    auto& handler = *handler_;
    if (acquired()) {
        race_detector::on_acquired(held()->keys().lock());  // the handler runs after this
        return handler.complete(std::move(handler_), {}, lease_access::make(held(), kind_));
    }
    if (told_) *told_->where = told_in_words(why(), *told_->keys, where());
    boost::system::error_code code = make_error_code(why().code);
    if (why().code == errc::cancelled) code = boost::asio::error::operation_aborted;
    handler.complete(std::move(handler_), code, lease());
}

async_hold_operation::async_hold_operation(std::shared_ptr<hold_face> target, what kind,
                                           std::unique_ptr<completion> handler)
    : hold_operation(std::move(target), kind), keeps_core_(where().shared_from_this()), handler_(std::move(handler)) {}

void async_hold_operation::start(std::shared_ptr<hold_face> target, what kind, std::unique_ptr<completion> handler) {
    const auto keep_core = target->where().shared_from_this();  // enter() may destroy the operation
    auto* const operation = new async_hold_operation(std::move(target), kind, std::move(handler));
    const sending how = expect(operation->where());
    operation->hold_operation::start(how);
}

void async_hold_operation::finished() {
    const std::unique_ptr<async_hold_operation> self(this);
    where().loop().expected_has_come();
    if (!handler_) return;
    auto& handler = *handler_;
    handler.complete(std::move(handler_), result());
}

}  // namespace api

namespace detail {
namespace {

// The sizes of most handlers, together with their executors and results.
constexpr std::size_t step = 64;
constexpr std::size_t largest = 4 * step;

}  // namespace

void* take_room(std::size_t size) {
    if (size > largest) return ::operator new(size);
    if (size > 3 * step) return recycled<4 * step>::take();
    if (size > 2 * step) return recycled<3 * step>::take();
    return size > step ? recycled<2 * step>::take() : recycled<step>::take();
}

void give_room_back(void* room, std::size_t size) noexcept {
    if (size > largest) return ::operator delete(room);
    if (size > 3 * step) return recycled<4 * step>::give_back(room);
    if (size > 2 * step) return recycled<3 * step>::give_back(room);
    return size > step ? recycled<2 * step>::give_back(room) : recycled<step>::give_back(room);
}

boost::asio::system_context& callback_executor::query(boost::asio::execution::context_t) const noexcept {
    static boost::asio::system_executor anywhere;
    return boost::asio::query(anywhere, boost::asio::execution::context);
}

void callback_executor::push(std::unique_ptr<callback> work) const {
    const bool is_forked = core_ && core_->forked();
    if (core_ && !is_forked) return core_->notifier().notify(std::move(work));
    auto run = [work = std::move(work)]() mutable {
        callback& present = *work;
        present.run(std::move(work));
    };
    // A child of fork() has none of its parent's threads, neither the client's nor those of the system executor, and
    // must not touch their state.
    if (is_forked) return std::thread(std::move(run)).detach();
    // An empty lease has no client: its handler runs on the system executor.
    boost::asio::post(boost::asio::system_executor(), std::move(run));
}

}  // namespace detail
}  // namespace holdfast
