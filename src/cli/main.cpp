// The holdfast command: words in, a subcommand, an exit status out.
#include "cli/commands/program.hpp"
#include "cli/terminal/system.hpp"

#include <poll.h>
#include <unistd.h>

#include <iostream>

namespace holdfast::cli {
namespace {

// Whether somebody has read, or the file has taken, what was written. A reader that has gone away does not mind.
bool is_output_lost() {
    std::cout.flush();
    if (std::cout.good()) return false;
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return ::poll(&output, 1, 0) <= 0 || (output.revents & POLLERR) == 0;
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
    try {
        const int status = holdfast::cli::program(std::vector<std::string>(argv + 1, argv + argc)).run();
        if (!holdfast::cli::is_output_lost()) return status;
        holdfast::cli::tell("the output could not be written; is the disk full?");
        return holdfast::cli::own_failure;
    } catch (const std::exception& why) {
        holdfast::cli::tell(why.what());
        return holdfast::cli::own_failure;
    }
}
