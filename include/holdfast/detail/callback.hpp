// What the library calls back, without Asio: a function on the callback thread, and a handler whose type is erased.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace holdfast::detail {

/// Something to be run on the client's callback thread.
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
    /// Most handlers cannot be cancelled, and need not be told how.
    virtual bool can_be_cancelled() const = 0;
    /// `cancel` may be called from the handler's own context until it is posted, and harmlessly afterwards.
    virtual void on_cancellation(std::function<void()> cancel) = 0;
};

}  // namespace holdfast::detail
