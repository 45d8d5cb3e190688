#include "support/documented_user.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace holdfast::testing {
namespace {

constexpr const char* page = HOLDFAST_DOCS "/deployment.md";

documented_user read(const std::string& line) {
    std::istringstream in{line};
    documented_user user;
    std::string word, on;
    in >> word >> user.name >> on >> user.password;
    if (on != "on" || !user.password.starts_with('>')) throw std::runtime_error{"not as expected: " + line};
    user.password.erase(0, 1);
    while (in >> word) user.words.push_back(word);
    return user;
}

}  // namespace

std::string documented_user::words_alone() const {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
}

std::string documented_user::line() const {
    return name + " on >" + password + " " + words_alone();
}

std::vector<std::string> documented_user::command(const std::vector<std::string>& with) const {
    std::vector<std::string> all{"ACL", "SETUSER", name, "reset", "on", ">" + password};
    all.insert(all.end(), with.begin(), with.end());
    return all;
}

std::vector<std::string> documented_user::rights() const {
    std::vector<std::string> all;
    for (const std::string& word : words) {
        if (word.starts_with('+') || word.starts_with('~') || word.starts_with('&')) all.push_back(word);
    }
    return all;
}

std::vector<std::string> documented_user::words_without(const std::string& right) const {
    std::vector<std::string> rest = words;
    if (std::erase(rest, right) != 1) throw std::runtime_error{"not one " + right};
    return rest;
}

documented_user documented(const std::string& name) {
    std::ifstream in{page};
    if (!in) throw std::runtime_error{std::string{"cannot read "} + page};
    std::vector<documented_user> found;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("    user " + name + " ")) found.push_back(read(line));
    }
    if (found.size() != 1) throw std::runtime_error{page + (": not one user " + name)};
    return found.front();
}

}  // namespace holdfast::testing
