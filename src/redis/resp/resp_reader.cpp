#include "redis/resp/resp_reader.hpp"

#include <algorithm>
#include <charconv>

#include "redis/resp/characters.hpp"

namespace holdfast::redis {

namespace {

// Nodes have 32-bit offsets and counts.
constexpr std::size_t largest_limit = 0x7fff'ffff;

// About 1 MiB of nodes is kept for the next reply.
constexpr std::size_t kept_nodes = (std::size_t{1} << 20) / sizeof(detail::resp_node);

bool is_type_byte(char byte) noexcept {
    constexpr std::string_view types = ":$*_+-,#!=(%~>|";  // the most frequent first
    return std::find(types.begin(), types.end(), byte) != types.end();
}

// What a line may contain: only what Redis sends. Anything else shows that the stream is out of step.

std::string_view without_minus(std::string_view text) noexcept {
    if (text.starts_with('-')) text.remove_prefix(1);
    return text;
}

// A decimal integer in its only form: no plus, no leading zero, no "-0", nothing around it, within 64 bits.
bool parse_integer(std::string_view text, std::int64_t& out) noexcept {
    const std::string_view digits = without_minus(text);
    if (digits.starts_with('0') && text != "0") return false;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, out);
    return error == std::errc{} && stopped == end;
}

// A finite double as printf or fpconv write it, or inf, -inf, nan, -nan.
bool is_double(std::string_view text) noexcept {
    const std::string_view magnitude = without_minus(text);
    if (magnitude == "inf" || magnitude == "nan") return true;
    // from_chars also accepts "infinity", "NAN(7)" and ".5".
    if (magnitude.empty() || !is_digit(magnitude.front())) return false;
    return number_in<double>(text).has_value();
}

bool is_big_number(std::string_view text) noexcept {
    const std::string_view digits = without_minus(text);
    return !digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit);
}

// The first 32 bytes in quotes, printable, with "..." if there were more.
std::string quote_excerpt(std::string_view bytes) {
    constexpr std::size_t most = 32;
    constexpr std::string_view hex = "0123456789abcdef";
    std::string quoted = "\"";
    for (const char c : bytes.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\r') {
            quoted += "\\r";
        } else if (c == '\n') {
            quoted += "\\n";
        } else if (c == '"' || c == '\\') {
            quoted.append({'\\', c});
        } else if (byte >= 0x20 && byte < 0x7f) {
            quoted += c;
        } else {
            quoted.append({'\\', 'x', hex[byte >> 4], hex[byte & 0xf]});
        }
    }
    quoted += '"';
    if (bytes.size() > most) quoted += "...";
    return quoted;
}

}  // namespace

resp_reader::resp_reader(resp_limits limits) : limits_(limits) {
    limits_.max_elements = std::min(limits_.max_elements, largest_limit);
    limits_.max_line_bytes = std::min(limits_.max_line_bytes, largest_limit);
    limits_.max_reply_bytes = std::min(limits_.max_reply_bytes, largest_limit);
    open_.reserve(std::min<std::size_t>(limits_.max_depth, 64));
}

std::span<char> resp_reader::prepare(std::size_t at_least) {
    if (complete_) retire_reply();
    const bool idle = buffer_.size() == 0;
    if (idle && nodes_.capacity() > kept_nodes) nodes_ = {};
    return buffer_.make_room(at_least);
}

resp_status resp_reader::next(reply_view& out) {
    if (fault_ != resp_fault::none) return resp_status::broken;
    if (complete_) retire_reply();
    for (;;) {
        switch (step()) {
            case progress::need_more:
                return resp_status::need_more;
            case progress::broken:
                return resp_status::broken;
            case progress::opened:
                break;
            case progress::element:
                if (!close_element()) break;
                complete_ = true;
                out = reply_view{nodes_.data(), buffer_.data()};
                return resp_status::reply;
        }
    }
}

void resp_reader::reset() {
    buffer_.clear();
    nodes_.clear();
    if (nodes_.capacity() > kept_nodes) nodes_ = {};
    open_.clear();
    parsed_ = scanned_ = element_ = announced_ = 0;
    waiting_for_ = waiting_for::header;
    complete_ = false;
    fault_ = resp_fault::none;
    fault_text_.clear();
}

void resp_reader::retire_reply() {
    buffer_.consume(parsed_);
    nodes_.clear();
    parsed_ = scanned_ = element_ = announced_ = 0;
    complete_ = false;
}

// Reads one line, or the body of the string that was announced before.
resp_reader::progress resp_reader::step() {
    if (waiting_for_ == waiting_for::bulk_body) return take_bulk_body();
    line header{};
    const progress line_progress = take_line(header);
    return line_progress == progress::element ? take_element(header) : line_progress;
}

// Finds the end of the line that begins at parsed_. No byte is searched twice: scanned_ says how far the search got.
// The window ends at the limit, so that the fault does not depend on where the pieces end.
resp_reader::progress resp_reader::take_line(line& out) {
    const char* const data = buffer_.data();
    const std::size_t size = buffer_.size();
    element_ = parsed_;
    if (parsed_ == size) return progress::need_more;
    if (!is_type_byte(data[parsed_])) return break_here(resp_fault::malformed, "unknown type of reply");

    const std::size_t start = parsed_ + 1;
    const bool window_is_cut = size - start > limits_.max_line_bytes;
    const std::size_t window_end = window_is_cut ? start + limits_.max_line_bytes + 1 : size;
    std::size_t at = std::max(scanned_, start);
    while (at < window_end && data[at] != '\r' && data[at] != '\n') ++at;
    scanned_ = at;
    if (at == window_end) {
        return window_is_cut ? break_here(resp_fault::line_too_long, "line is too long") : progress::need_more;
    }
    if (data[at] == '\n') return break_here(resp_fault::malformed, "newline without carriage return");
    if (at + 1 == size) return progress::need_more;
    if (data[at + 1] != '\n') return break_here(resp_fault::malformed, "carriage return without newline");
    if (at + 2 > limits_.max_reply_bytes) return break_here(resp_fault::reply_too_long, "reply is too long");

    out = {data[parsed_], std::string_view{data + start, at - start}};
    parsed_ = scanned_ = at + 2;
    return progress::element;
}

resp_reader::progress resp_reader::take_element(const line& header) {
    switch (header.type) {
        case ':':
            return take_integer(header);
        case '$':
            return open_bulk(resp_type::bulk_string, header);
        case '*':
            return open_aggregate_of(resp_type::array, header);
        case '+':
            return take_text(resp_type::simple_string, header);
        case '-':
            return take_text(resp_type::simple_error, header);
        case '_':
            if (!header.text.empty()) return break_here(resp_fault::malformed, "bad null");
            add_node(resp_type::null);
            return progress::element;
        case ',':
            if (!is_double(header.text)) return break_here(resp_fault::malformed, "bad double");
            return take_text(resp_type::double_number, header);
        case '#':
            if (header.text != "t" && header.text != "f") return break_here(resp_fault::malformed, "bad boolean");
            add_node(resp_type::boolean).integer = header.text == "t" ? 1 : 0;
            return progress::element;
        case '!':
            return open_bulk(resp_type::blob_error, header);
        case '=':
            return open_bulk(resp_type::verbatim_string, header);
        case '(':
            if (!is_big_number(header.text)) return break_here(resp_fault::malformed, "bad big number");
            return take_text(resp_type::big_number, header);
        case '%':
            return open_aggregate_of(resp_type::map, header);
        case '~':
            return open_aggregate_of(resp_type::set, header);
        case '>':
            return open_aggregate_of(resp_type::push, header);
        case '|':
            return open_attribute(header);
        default:
            break;
    }
    return break_here(resp_fault::malformed, "unknown type of reply");
}

resp_reader::progress resp_reader::take_text(resp_type type, const line& from) {
    set_text(add_node(type), from.text);
    return progress::element;
}

resp_reader::progress resp_reader::take_integer(const line& from) {
    std::int64_t value = 0;
    if (!parse_integer(from.text, value)) return break_here(resp_fault::malformed, "bad integer");
    add_node(resp_type::integer).integer = value;
    return progress::element;
}

resp_reader::progress resp_reader::open_bulk(resp_type type, const line& header) {
    std::int64_t length = 0;
    if (!read_length(header, length)) return progress::broken;
    if (length == -1 && type == resp_type::bulk_string) {
        add_node(resp_type::null);
        return progress::element;
    }
    if (length < 0) return break_here(resp_fault::malformed, "negative length");
    const auto bytes = static_cast<std::size_t>(length);
    if (bytes > limits_.max_bulk_bytes) return break_here(resp_fault::bulk_too_long, "string is too long");
    if (bytes + 2 > limits_.max_reply_bytes - parsed_) {
        return break_here(resp_fault::reply_too_long, "reply is too long");
    }
    waiting_for_ = waiting_for::bulk_body;
    bulk_type_ = type;
    bulk_bytes_ = bytes;
    return take_bulk_body();
}

resp_reader::progress resp_reader::take_bulk_body() {
    if (buffer_.size() - parsed_ < bulk_bytes_ + 2) return progress::need_more;
    const char* const body = buffer_.data() + parsed_;
    std::string_view text{body, bulk_bytes_};
    if (body[bulk_bytes_] != '\r' || body[bulk_bytes_ + 1] != '\n') {
        return break_at(parsed_ + bulk_bytes_, resp_fault::malformed, "string does not end where it said");
    }
    if (bulk_type_ == resp_type::verbatim_string) {
        if (text.size() < 4 || text[3] != ':') {
            return break_here(resp_fault::malformed, "verbatim string without format");
        }
        text.remove_prefix(4);
    }
    set_text(add_node(bulk_type_), text);
    waiting_for_ = waiting_for::header;
    parsed_ = scanned_ = parsed_ + bulk_bytes_ + 2;
    return progress::element;
}

resp_reader::progress resp_reader::open_aggregate_of(resp_type type, const line& header) {
    std::int64_t length = 0;
    if (!read_length(header, length)) return progress::broken;
    if (length == -1 && type == resp_type::array) {
        add_node(resp_type::null);
        return progress::element;
    }
    std::uint32_t children = 0;
    if (announce(header, length, children) == progress::broken) return progress::broken;
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    add_node(type).children = children;
    if (children == 0) return progress::element;
    open_.push_back({index, children, open_aggregate::kept});
    return progress::opened;
}

// An attribute decorates the element after it. It counts neither as a child nor as a reply.
resp_reader::progress resp_reader::open_attribute(const line& header) {
    std::int64_t length = 0;
    if (!read_length(header, length)) return progress::broken;
    std::uint32_t children = 0;
    if (announce(header, length, children) == progress::broken) return progress::broken;
    if (children == 0) return progress::opened;
    open_.push_back({static_cast<std::uint32_t>(nodes_.size()), children, open_aggregate::dropped});
    return progress::opened;
}

// Checks the announced size against the limits. Nothing is reserved for it: nodes are made when their bytes arrive.
// Each attribute costs one element, otherwise a server could send empty ones for ever.
resp_reader::progress resp_reader::announce(const line& header, std::int64_t length, std::uint32_t& children) {
    if (length < 0) return break_here(resp_fault::malformed, "negative length");
    if (open_.size() >= limits_.max_depth) return break_here(resp_fault::too_deep, "reply is nested too deeply");
    const std::size_t left = limits_.max_elements - announced_;
    const bool pairs = header.type == '%' || header.type == '|';
    const std::size_t each = pairs ? 2 : 1;
    const auto entries = static_cast<std::size_t>(length);
    const std::size_t cost = header.type == '|' ? 1 : 0;
    if (entries > left / each || entries * each + cost > left) {
        return break_here(resp_fault::too_many_elements, "reply has too many elements");
    }
    announced_ += entries * each + cost;
    children = static_cast<std::uint32_t>(entries * each);
    return progress::element;
}

// An element is complete, and perhaps aggregates that end with it. True if the reply is complete.
bool resp_reader::close_element() {
    while (!open_.empty()) {
        open_aggregate& innermost = open_.back();
        if (--innermost.missing > 0) return false;
        if (innermost.fate == open_aggregate::dropped) {
            nodes_.resize(innermost.node);
            open_.pop_back();
            return false;  // the decorated element follows
        }
        nodes_[innermost.node].end = static_cast<std::uint32_t>(nodes_.size());
        open_.pop_back();
    }
    return true;
}

// The end of the subtree is correct for a leaf. close_element() sets it for aggregates.
detail::resp_node& resp_reader::add_node(resp_type type) {
    detail::resp_node& node = nodes_.emplace_back();
    node.type = type;
    node.end = static_cast<std::uint32_t>(nodes_.size());
    return node;
}

void resp_reader::set_text(detail::resp_node& node, std::string_view text) const noexcept {
    node.text_offset = static_cast<std::uint32_t>(text.data() - buffer_.data());
    node.text_length = static_cast<std::uint32_t>(text.size());
}

bool resp_reader::read_length(const line& header, std::int64_t& out) {
    if (parse_integer(header.text, out)) return true;
    break_here(resp_fault::malformed,
               header.text == "?" ? "streamed strings and aggregates are not supported" : "bad length");
    return false;
}

resp_reader::progress resp_reader::break_at(std::size_t offset, resp_fault fault, std::string_view why) {
    const std::string_view rest{buffer_.data() + offset, buffer_.size() - offset};
    fault_text_.assign(why).append(", at ").append(quote_excerpt(rest));
    fault_ = fault;
    buffer_.clear();
    nodes_.clear();
    open_.clear();
    parsed_ = scanned_ = element_ = 0;
    return progress::broken;
}

}  // namespace holdfast::redis
