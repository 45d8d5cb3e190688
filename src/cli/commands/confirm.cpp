#include "cli/commands/confirm.hpp"

#include <unistd.h>

#include <iostream>

namespace holdfast::cli {

bool user_agrees(const std::string& question) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
    std::cerr << question << " [y/N] ";
    std::string line;
    return std::getline(std::cin, line) && (line == "y" || line == "Y" || line == "yes");
}

}  // namespace holdfast::cli
