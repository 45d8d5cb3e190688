// Why a lock has a token. A writer acquires the lock, and then its machine sleeps for longer than its lease: a garbage
// collector, a laptop's lid, a paused container. Another writer acquires the lock and writes. Then the first one wakes
// up in its critical section and writes too. No lock can prevent that. The database can: it stores the highest token
// and refuses writes with smaller ones.
//
// Usage: fenced_sqlite [URL]
#include <sqlite3.h>
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

struct close_database {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct close_statement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using statement = std::unique_ptr<sqlite3_stmt, close_statement>;

class warehouse {
public:
    warehouse() {
        sqlite3* opened = nullptr;
        const int result = sqlite3_open(":memory:", &opened);
        database_.reset(opened);
        check(result);
        run(prepare("CREATE TABLE stock (item INTEGER PRIMARY KEY, amount INTEGER, token INTEGER)"));
        run(prepare("INSERT INTO stock VALUES (1001, 10, 0)"));
    }

    // Checks the token and writes in one statement, so nothing happens in between. Returns false if refused.
    bool write(int amount, const holdfast::lease& hold) {
        const auto update = prepare("UPDATE stock SET amount = ?1, token = ?2 WHERE item = 1001 AND token <= ?2");
        check(sqlite3_bind_int(update.get(), 1, amount));
        check(sqlite3_bind_int64(update.get(), 2, static_cast<sqlite3_int64>(hold.token())));
        run(update);
        return sqlite3_changes(database_.get()) == 1;
    }

    int amount() {
        const auto query = prepare("SELECT amount FROM stock WHERE item = 1001");
        if (sqlite3_step(query.get()) != SQLITE_ROW) fail();
        return sqlite3_column_int(query.get(), 0);
    }

private:
    [[noreturn]] void fail() { throw std::runtime_error(sqlite3_errmsg(database_.get())); }
    void check(int result) {
        if (result != SQLITE_OK) fail();
    }
    statement prepare(const char* text) {
        sqlite3_stmt* made = nullptr;
        check(sqlite3_prepare_v2(database_.get(), text, -1, &made, nullptr));
        return statement{made};
    }
    void run(const statement& prepared) {
        if (sqlite3_step(prepared.get()) != SQLITE_DONE) fail();
    }

    std::unique_ptr<sqlite3, close_database> database_;
};

const char* outcome(bool written) {
    return written ? "written" : "refused";
}

}  // namespace

int main(int count, char** words) try {
    holdfast::client redis{count > 1 ? words[1] : "redis://127.0.0.1:6379"};
    // Without renewal, as if the whole machine slept.
    holdfast::mutex lock{redis, "stock:1001", {.lease = 200ms, .renew = false}};
    warehouse store;

    const holdfast::lease first = lock.acquire();
    std::cout << "first has the lock, token " << first.token() << ", and falls asleep\n";
    std::this_thread::sleep_for(300ms);

    const holdfast::lease second = lock.acquire();
    std::cout << "second has the lock, token " << second.token() << '\n';
    const bool second_wrote = store.write(7, second);
    std::cout << "second writes 7: " << outcome(second_wrote) << '\n';

    const bool first_wrote = store.write(9, first);
    std::cout << "first wakes up and writes 9: " << outcome(first_wrote) << '\n';
    std::cout << "in stock: " << store.amount() << '\n';
    return second_wrote && !first_wrote && store.amount() == 7 ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "fenced_sqlite: " << failure.what() << '\n';
    return 2;
}
