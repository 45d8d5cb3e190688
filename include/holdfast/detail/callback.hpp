// The interfaces by which the library calls user code: a function for the callback thread, and a completion handler.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace holdfast::detail {

/// A function that runs on the client's callback thread.
class callback {
public:
    virtual ~callback() = default;
    /// `self` is this object. Called once.
    virtual void run(std::unique_ptr<callback> self) = 0;
};

template <typename Function>
class callback_of final : public callback {
public:
    explicit callback_of(Function function) : function_(std::move(function)) {}
    void run(std::unique_ptr<callback>) override { std::move(function_)(); }

private:
    Function function_;
};

template <typename... Results>
class completion {
public:
    virtual ~completion() = default;
    /// Posts the handler; `self` is this object. Called once.
    virtual void complete(std::unique_ptr<completion> self, Results... results) = 0;
    /// False for most handlers; then on_cancellation() is not called.
    virtual bool can_be_cancelled() const = 0;
    /// The handler's context may call `cancel` until the handler is posted. A later call does nothing.
    virtual void on_cancellation(std::function<void()> cancel) = 0;
};

}  // namespace holdfast::detail
