// A server with one thread: every connection is a coroutine that reads "add <amount>", changes the account under the
// lock and answers with the balance. While one coroutine waits for the lock, the thread serves the others: nothing
// blocks. A second server process, on another machine, would wait in the same queue.
//
// Usage: coroutine_server [URL]. Its ten customers are coroutines of the same program. It ends when they are done.
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio.hpp>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

constexpr int customers = 10;

// A store that knows nothing of locks: reading and writing are two steps, and much may happen between them.
struct account {
    int balance = 0;
};

asio::awaitable<int> add(account& store, int amount) {
    const int before = store.balance;
    asio::steady_timer slow_disk{co_await asio::this_coro::executor, 10ms};
    co_await slow_disk.async_wait(use_awaitable);
    co_return store.balance = before + amount;
}

asio::awaitable<void> serve(tcp::socket socket, holdfast::mutex& lock, account& store) {
    std::string line;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(line), '\n', use_awaitable);
    std::istringstream words(line);
    std::string verb;
    int amount = 0;
    words >> verb >> amount;

    holdfast::lease hold = co_await lock.async_acquire(use_awaitable);
    const int balance = co_await add(store, amount);
    co_await hold.async_release(use_awaitable);

    co_await asio::async_write(socket, asio::buffer(std::to_string(balance) + '\n'), use_awaitable);
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, holdfast::mutex& lock, account& store) {
    for (int served = 0; served < customers; ++served) {
        auto socket = co_await acceptor.async_accept(use_awaitable);
        asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), lock, store), asio::detached);
    }
}

asio::awaitable<void> visit(tcp::endpoint server, int number) {
    tcp::socket socket{co_await asio::this_coro::executor};
    co_await socket.async_connect(server, use_awaitable);
    co_await asio::async_write(socket, asio::buffer("add " + std::to_string(number) + '\n'), use_awaitable);
    std::string answer;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), '\n', use_awaitable);
    std::cout << "customer " << number << " adds " << number << ", the balance is " << answer;
}

}  // namespace

int main(int count, char** words) try {
    holdfast::client redis{count > 1 ? words[1] : "redis://127.0.0.1:6379"};
    holdfast::mutex lock{redis, "account:7"};
    account store;
    asio::io_context loop;
    tcp::acceptor acceptor{loop, {asio::ip::address_v4::loopback(), 0}};
    asio::co_spawn(loop, accept_all(acceptor, lock, store), asio::detached);
    for (int number = 1; number <= customers; ++number) {
        asio::co_spawn(loop, visit(acceptor.local_endpoint(), number), asio::detached);
    }
    loop.run();
    std::cout << "balance: " << store.balance << '\n';
    return store.balance == customers * (customers + 1) / 2 ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "coroutine_server: " << failure.what() << '\n';
    return 2;
}
