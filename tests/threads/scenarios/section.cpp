// The serial section: one inside at a time, each task once and in order, settled at the end.
#include HOLDFAST_SOURCE_UNDER_TEST

#include <vector>

#include "threads/registry.hpp"

namespace holdfast::explored {
namespace {

using interleaving::require;

class section final : public serial_section {
public:
    class visit {
    public:
        explicit visit(section& what) : what_(what) {
            require(!what_.occupied_, "two threads are inside");
            what_.occupied_ = true;
            interleaving::step();
        }
        ~visit() { what_.occupied_ = false; }
        visit(const visit&) = delete;
        visit& operator=(const visit&) = delete;

    private:
        section& what_;
    };

    unsigned unsettled = 0;

private:
    void settle() override {
        const visit inside(*this);
        unsettled = 0;
    }
    bool occupied_ = false;
};

class task final : public serial_task {
public:
    task(section& where, unsigned* last_of_thread, unsigned number)
        : where_(where), last_(last_of_thread), number_(number) {}
    void run() override {
        const section::visit inside(where_);
        require(*last_ + 1 == number_, "the tasks of a thread run once and in their order");
        *last_ = number_;
        ++where_.unsettled;
    }

private:
    section& where_;
    unsigned* last_;
    unsigned number_;
};

enum class way { enters, leaves };

void world(const std::vector<std::pair<way, unsigned>>& threads) {
    section subject;
    std::vector<unsigned> last(threads.size());
    std::vector<std::vector<std::unique_ptr<task>>> tasks(threads.size());
    std::vector<int> running;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        for (unsigned n = 1; n <= threads[i].second; ++n) {
            tasks[i].push_back(std::make_unique<task>(subject, &last[i], n));
        }
        running.push_back(interleaving::start([&, i] {
            for (const auto& each : tasks[i]) {
                if (threads[i].first == way::enters) {
                    subject.enter(*each);
                } else if (subject.leave(*each)) {
                    subject.run_what_was_left();
                }
            }
        }));
    }
    for (const int each : running) interleaving::join(each);
    for (std::size_t i = 0; i < threads.size(); ++i) require(last[i] == threads[i].second, "every task runs");
    require(subject.unsettled == 0, "the section is settled before it is left");
}

const interleaving::registered here({
    {"section", HOLDFAST_VARIANT, "two threads enter twice",
     [] {
         world({{way::enters, 2}, {way::enters, 2}});
     },
     4},
    {"section", HOLDFAST_VARIANT, "three threads enter",
     [] {
         world({{way::enters, 1}, {way::enters, 1}, {way::enters, 1}});
     },
     3},
    {"section", HOLDFAST_VARIANT, "one enters, two leave tasks",
     [] {
         world({{way::enters, 1}, {way::leaves, 1}, {way::leaves, 1}});
     },
     3},
});

}  // namespace
}  // namespace holdfast::explored
