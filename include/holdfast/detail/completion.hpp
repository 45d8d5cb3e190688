// Erases the type of an Asio completion handler, so that the library can call it.
//
// The handler is posted to its associated executor and never runs inside the library. A handler without an executor
// runs on the client's callback thread. While an operation is in flight, its executor has outstanding work.
#pragma once

#include <holdfast/detail/callback.hpp>
#include <holdfast/errors.hpp>
#include <holdfast/export.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace holdfast::api {
class core;
}

namespace holdfast::detail {

/// Runs functions one after the other on the client's callback thread.
class HOLDFAST_EXPORT callback_executor {
public:
    explicit callback_executor(std::shared_ptr<api::core> core) noexcept : core_(std::move(core)) {}

    template <typename Function>
    void execute(Function&& function) const {
        push(std::make_unique<callback_of<std::decay_t<Function>>>(std::forward<Function>(function)));
    }
    void push(std::unique_ptr<callback> work) const;

    boost::asio::system_context& query(boost::asio::execution::context_t) const noexcept;
    static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
        return boost::asio::execution::blocking.never;
    }
    callback_executor require(boost::asio::execution::blocking_t::never_t) const { return *this; }

    friend bool operator==(const callback_executor&, const callback_executor&) noexcept = default;

private:
    std::shared_ptr<api::core> core_;
};

/// Recycled memory for the objects that every operation makes.
HOLDFAST_EXPORT void* take_room(std::size_t size);
HOLDFAST_EXPORT void give_room_back(void* room, std::size_t size) noexcept;

template <typename Handler, typename... Results>
class completion_of final : public completion<Results...>, private callback {
public:
    completion_of(Handler handler, const callback_executor& fallback)
        : handler_(std::move(handler)),
          executor_(boost::asio::prefer(boost::asio::get_associated_executor(handler_, fallback),
                                        boost::asio::execution::outstanding_work.tracked)) {}

    static void* operator new(std::size_t size) { return take_room(size); }
    static void operator delete(void* room, std::size_t size) noexcept { give_room_back(room, size); }
    /// For handlers with an extended alignment.
    static void* operator new(std::size_t size, std::align_val_t to) { return ::operator new(size, to); }
    static void operator delete(void* room, std::align_val_t to) noexcept { ::operator delete(room, to); }

    void complete(std::unique_ptr<completion<Results...>> self, Results... results) override {
        // Posting may destroy this object, and the executor must keep the client alive until post() returns: hence a
        // copy.
        const auto executor = executor_;
        if constexpr (std::is_same_v<tracked_executor, callback_executor>) {
            results_.emplace(std::move(results)...);  // the callback thread gets this object itself
            executor.push(std::unique_ptr<callback>(static_cast<completion_of*>(self.release())));
        } else {
            boost::asio::post(executor, posted{std::move(self), std::tuple<Results...>(std::move(results)...)});
        }
    }

    bool can_be_cancelled() const override {
        return boost::asio::get_associated_cancellation_slot(handler_).is_connected();
    }

    void on_cancellation(std::function<void()> cancel) override {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        slot.assign([cancel = std::move(cancel)](boost::asio::cancellation_type type) {
            if (type != boost::asio::cancellation_type::none) cancel();
        });
    }

private:
    struct posted {
        std::unique_ptr<completion<Results...>> self;
        std::tuple<Results...> results;

        void operator()() {
            auto& mine = static_cast<completion_of&>(*self);
            mine.finish(std::move(self), std::move(results));
        }
    };

    void run(std::unique_ptr<callback> self) override { finish(std::move(self), std::move(*results_)); }

    template <typename Self>
    void finish(std::unique_ptr<Self> self, std::tuple<Results...> answers) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected()) slot.clear();
        Handler handler = std::move(handler_);
        self.reset();  // the work guard ends before the handler runs
        std::apply(std::move(handler), std::move(answers));
    }

    using tracked_executor = std::decay_t<decltype(boost::asio::prefer(
        std::declval<boost::asio::associated_executor_t<Handler, callback_executor>>(),
        boost::asio::execution::outstanding_work.tracked))>;

    Handler handler_;
    tracked_executor executor_;
    std::optional<std::tuple<Results...>> results_;  // while the callback thread has not run it
};

template <typename... Results, typename Handler>
std::unique_ptr<completion<Results...>> erase_handler(Handler handler, const callback_executor& fallback) {
    return std::make_unique<completion_of<Handler, Results...>>(std::move(handler), fallback);
}

}  // namespace holdfast::detail
