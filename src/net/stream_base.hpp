// What the kinds of stream have in common: results that cross from the io_context's thread into the serial section.
//
// Asio calls back on the thread that drives the loop; what it said is put down in the stream and a task enters the
// section to act on it. Each direction has one operation under way at most, so one task each is enough. A stream
// keeps itself alive while an operation is under way or a task is on its way.
#pragma once

#include "net/stream.hpp"

#include <boost/system/error_code.hpp>
#include <memory>

namespace holdfast::net {

failure describe_connect_error(const boost::system::error_code& code, const endpoint& target);
failure describe_stream_error(const boost::system::error_code& code, const endpoint& target);

class stream_base : public stream, public std::enable_shared_from_this<stream_base> {
public:
    void close() final {
        if (closed_) return;
        closed_ = true;
        shut();
    }

protected:
    stream_base(serial_section& section, endpoint target, stream_listener& listener)
        : target_(std::move(target)), section_(section), listener_(listener) {}

    virtual void shut() = 0;

    // Each runs `then` inside the section unless the stream is closed by then.
    class step final : public serial_task {
    public:
        template <typename Then>
        void enter(stream_base& owner, const boost::system::error_code& code, std::size_t count, Then then) {
            keep_alive_ = owner.shared_from_this();
            code_ = code;
            count_ = count;
            then_ = then;
            owner.section_.enter(*this);
        }
        void run() override {
            const auto owner = std::move(keep_alive_);
            if (!owner->closed_) then_(*owner, code_, count_);
        }

    private:
        std::shared_ptr<stream_base> keep_alive_;
        boost::system::error_code code_;
        std::size_t count_ = 0;
        void (*then_)(stream_base&, const boost::system::error_code&, std::size_t) = nullptr;
    };

    void received(const boost::system::error_code& code, std::size_t count) {
        reading_.enter(*this, code, count, [](stream_base& self, const auto& failed, std::size_t got) {
            if (failed) return self.listener_.on_stream_failed(describe_stream_error(failed, self.target_));
            self.listener_.on_received(got);
        });
    }

    void sent(const boost::system::error_code& code) {
        writing_.enter(*this, code, 0, [](stream_base& self, const auto& failed, std::size_t) {
            if (failed) return self.listener_.on_stream_failed(describe_stream_error(failed, self.target_));
            self.listener_.on_sent();
        });
    }

    void connected() {
        connecting_.enter(*this, {}, 0, [](stream_base& self, const auto&, std::size_t) { self.listener_.on_connected(); });
    }

    void not_connected(const boost::system::error_code& code) {
        connecting_.enter(*this, code, 0, [](stream_base& self, const auto& failed, std::size_t) {
            self.listener_.on_stream_failed(describe_connect_error(failed, self.target_));
        });
    }

    const endpoint target_;
    serial_section& section_;
    stream_listener& listener_;
    step connecting_;

    bool closed() const noexcept { return closed_; }

private:
    step reading_;
    step writing_;
    bool closed_ = false;  // touched inside the section only
};

}  // namespace holdfast::net
