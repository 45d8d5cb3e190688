#include "server_model/data_types.hpp"

namespace holdfast::sim {

field_map::field_map(const field_map& other) : fields_(other.fields_) {
    for (auto at = fields_.begin(); at != fields_.end(); ++at) index_.emplace(at->first, at);
}

field_map& field_map::operator=(const field_map& other) {
    if (this != &other) *this = field_map{other};
    return *this;
}

const std::string* field_map::find(std::string_view field) const {
    const auto found = index_.find(field);
    return found == index_.end() ? nullptr : &found->second->second;
}

bool field_map::set(std::string_view field, std::string data) {
    if (const auto found = index_.find(field); found != index_.end()) {
        found->second->second = std::move(data);
        return false;
    }
    const auto at = fields_.emplace(fields_.end(), std::string{field}, std::move(data));
    index_.emplace(at->first, at);
    return true;
}

bool field_map::erase(std::string_view field) {
    const auto found = index_.find(field);
    if (found == index_.end()) return false;
    const auto at = found->second;
    index_.erase(found);
    fields_.erase(at);
    return true;
}

sorted_set::sorted_set(const sorted_set& other) : by_member_(other.by_member_) {
    for (const auto& [member, score] : by_member_) order_.emplace(score, member);
}

sorted_set& sorted_set::operator=(const sorted_set& other) {
    if (this != &other) *this = sorted_set{other};
    return *this;
}

std::optional<double> sorted_set::score(std::string_view member) const {
    const auto found = by_member_.find(member);
    if (found == by_member_.end()) return std::nullopt;
    return found->second;
}

bool sorted_set::set(std::string_view member, double score) {
    if (score == 0) score = 0;  // -0 becomes 0, as in a real server's listpack
    const auto found = by_member_.find(member);
    if (found == by_member_.end()) {
        const auto inserted = by_member_.emplace(member, score).first;
        order_.emplace(score, inserted->first);
        return true;
    }
    if (found->second != score) {
        order_.erase({found->second, found->first});
        found->second = score;
        order_.emplace(score, found->first);
    }
    return false;
}

bool sorted_set::erase(std::string_view member) {
    const auto found = by_member_.find(member);
    if (found == by_member_.end()) return false;
    order_.erase({found->second, found->first});
    by_member_.erase(found);
    return true;
}

}  // namespace holdfast::sim
