// Programs that tests run, and the small helpers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/spawn.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::harness_process_test {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, OutputErrorsAndStatusAreCollected) {
    child_process child{"sh", {.arguments = {"-c", "echo out; echo err >&2; exit 7"}}};
    EXPECT_EQ(child.wait(), (exit_result{.status = 7, .signal = 0}));
    EXPECT_EQ(child.output(), "out\n");
    EXPECT_EQ(child.errors(), "err\n");
}

TEST(ChildProcess, InputGoesThroughHoweverLong) {
    const std::string input(1 << 20, 'x');
    child_process child{"cat", {.input = input}};
    EXPECT_EQ(child.wait().status, 0);
    EXPECT_EQ(child.output(), input);
}

TEST(ChildProcess, InputMayComeLater) {
    child_process child{"cat", {.after_input = input_end::open}};
    child.write_input("one\n");
    EXPECT_TRUE(eventually([&] { return child.output() == "one\n"; }));
    child.write_input("two\n");
    child.close_input();
    EXPECT_EQ(child.wait().status, 0);
    EXPECT_EQ(child.output(), "one\ntwo\n");
}

TEST(ChildProcess, ThatDoesNotReadItsInputIsNoError) {
    child_process child{"true", {.input = std::string(1 << 20, 'x')}};
    EXPECT_EQ(child.wait().status, 0);
}

TEST(ChildProcess, EnvironmentAndDirectoryAreItsOwn) {
    const temp_directory directory;
    child_process child{"sh",
                        {.arguments = {"-c", "pwd; echo \"$HF_TEST,${HOME-gone}\""},
                         .environment = {{"HF_TEST", "a=b c"}},
                         .unset = {"HOME"},
                         .directory = directory.path()}};
    child.wait();
    EXPECT_EQ(child.output(), directory.path().string() + "\na=b c,gone\n");
}

TEST(ChildProcess, SignalsReachItAndAreTold) {
    child_process child{"sleep", {.arguments = {"600"}}};
    EXPECT_FALSE(child.wait_for(a_while));
    child.signal(SIGTERM);
    EXPECT_EQ(child.wait(), (exit_result{.status = -1, .signal = SIGTERM}));
    EXPECT_THROW(child.signal(SIGTERM), std::logic_error);
}

TEST(ChildProcess, IsKilledWithItsObject) {
    pid_t pid = 0;
    {
        child_process child{"sleep", {.arguments = {"600"}}};
        pid = child.pid();
        EXPECT_TRUE(child.running());
    }
    EXPECT_FALSE(process_is_alive(pid));
}

TEST(ChildProcess, InheritsNoDescriptorOfTheTest) {
    const unique_fd leaked{::open("/dev/null", O_RDONLY)};  // no CLOEXEC, as some libraries do
    child_process child{"ls", {.arguments = {"/proc/self/fd"}}};
    child.wait();
    EXPECT_EQ(child.output(), "0\n1\n2\n3\n") << "3 is the listing itself";
}

TEST(ChildProcess, ThatCannotBeRunThrows) {
    EXPECT_THROW(child_process{"/no/such/program"}, std::system_error);
    EXPECT_THROW(child_process{"no-such-program"}, std::system_error);
}

TEST(Eventually, EndsAtTheLimit) {
    EXPECT_FALSE(eventually([] { return false; }, 5ms));
    int calls = 0;
    EXPECT_TRUE(eventually([&] { return ++calls == 3; }));
    EXPECT_EQ(calls, 3);
}

TEST(TempDirectory, IsPrivateAndRemovedWithItsContent) {
    std::filesystem::path path;
    {
        const temp_directory directory;
        path = directory.path();
        std::ofstream{path / "file"} << "content";
        struct stat status {};
        ASSERT_EQ(::stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0700U);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace holdfast::testing::harness_process_test
