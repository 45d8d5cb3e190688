#include "redis/session/command_writer.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/assert.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t most_digits = 20;
constexpr std::size_t header_room = 1 + most_digits + 2;  // more than half of it is left by what is not that long
constexpr std::size_t block = 16;

constexpr char digit(std::size_t value) {
    return static_cast<char>('0' + value);
}

// What stands before a short argument: "$0\r\n" to "$99\r\n". Copied whole, however much of it is in use: a constant
// number of bytes needs no call and no look at the number.
struct short_header {
    std::array<char, 7> text{};
    std::uint8_t size = 0;
};
constexpr auto short_headers = [] {
    std::array<short_header, 100> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        short_header& one = all[i];
        one.text[one.size++] = '$';
        if (i >= 10) one.text[one.size++] = digit(i / 10);
        one.text[one.size++] = digit(i % 10);
        one.text[one.size++] = '\r';
        one.text[one.size++] = '\n';
    }
    return all;
}();

constexpr auto powers_of_ten = [] {
    std::array<std::uint64_t, most_digits> all{};
    std::uint64_t power = 1;
    for (std::uint64_t& one : all) {
        one = power;
        power *= 10;  // the last one is not used
    }
    return all;
}();

// Both ends at once, which overlap where there is less: both are read before anything is written.
template <std::size_t Size>
inline void put_ends(char* at, const char* from, std::size_t size) noexcept {
    std::array<char, Size> first;
    std::array<char, Size> last;
    std::memcpy(first.data(), from, Size);
    std::memcpy(last.data(), from + size - Size, Size);
    std::memcpy(at, first.data(), Size);
    std::memcpy(at + size - Size, last.data(), Size);
}

// Most pieces are short, and are copied before a call of memcpy has found out how long they are. Ids have some sixty
// characters: blocks, and the last one as far back as it must begin.
inline char* put(char* at, std::string_view text) noexcept {
    const char* const from = text.data();
    const std::size_t size = text.size();
    if (size > 4 * block) {
        std::memcpy(at, from, size);
    } else if (size > block) {
        for (std::size_t done = 0; done + block < size; done += block) std::memcpy(at + done, from + done, block);
        std::memcpy(at + size - block, from + size - block, block);
    } else if (size >= 8) {
        put_ends<8>(at, from, size);
    } else if (size >= 4) {
        put_ends<4>(at, from, size);
    } else {
        for (std::size_t i = 0; i < size; ++i) at[i] = from[i];
    }
    return at + size;
}

inline char* put_end_of_line(char* at) noexcept {
    std::memcpy(at, "\r\n", 2);
    return at + 2;
}

char* put_long_header(char* at, std::size_t size) noexcept {
    *at++ = '$';
    return put_end_of_line(std::to_chars(at, at + most_digits, size).ptr);
}

// With room for a long one behind it.
inline char* put_header(char* at, std::size_t size) noexcept {
    if (size >= short_headers.size()) return put_long_header(at, size);
    const short_header& known = short_headers[size];
    std::memcpy(at, known.text.data(), known.text.size());
    return at + known.size;
}

inline std::size_t digits_of(std::uint64_t value) noexcept {
    // 1233/4096 is the logarithm of two, and a little less than that.
    const auto at_least = static_cast<std::size_t>(std::bit_width(value | 1U)) * 1233 >> 12U;
    return at_least + (value >= powers_of_ten[at_least] ? 1 : 0);
}

// Digits are written by hand. In a loop that only writes the two commands of a cycle, this way took 176 ns and
// std::to_chars 452 ns. A cycle of the benchmark `parallel` takes about 3 us of client time, so that is some 8 % of it;
// the benchmark itself was not run with both.
//
// The eight decimal digits of a number below a hundred million, the first one in the lowest byte. All at once: two
// halves of four, then four quarters of two, then eight digits side by side in one word. 10486 / 2^20 is a hundredth of
// what is below ten thousand, and 103 / 2^10 a tenth of what is below a hundred.
constexpr std::uint64_t eight_digits(std::uint64_t value) {
    const std::uint64_t halves = value / 10'000 | value % 10'000 << 32U;
    const std::uint64_t hundreds = halves * 10486 >> 20U & 0x0000'007F'0000'007F;
    const std::uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16U;
    const std::uint64_t tens = quarters * 103 >> 10U & 0x000F'000F'000F'000F;
    return (tens | (quarters - 10 * tens) << 8U) + 0x3030'3030'3030'3030;
}
static_assert(eight_digits(12'345'678) == 0x3837'3635'3433'3231 && eight_digits(99'999'999) == 0x3939'3939'3939'3939);
static_assert(std::endian::native == std::endian::little);

inline void put_eight(char* at, std::uint64_t digits) noexcept {
    std::memcpy(at, &digits, sizeof digits);
}

// Which has so many digits. Eight characters or a multiple of that are written, so there must be room for some more.
inline void put_number(char* at, std::uint64_t value, std::size_t size) noexcept {
    constexpr std::uint64_t hundred_millions = 100'000'000;
    if (size > 8) {
        put_number(at, value / hundred_millions, size - 8);
        return put_eight(at + size - 8, eight_digits(value % hundred_millions));
    }
    put_eight(at, eight_digits(value) >> 8 * (8 - size));
}

}  // namespace

// Small parts are gathered, and `out` gets many at once. Nothing of what is gathered is read before it is written.
class argument_writer {
public:
    explicit argument_writer(std::string& out) noexcept : out_(out) {}

    void array_of(std::size_t count) noexcept {
        used_ = put_header(gathered_.data(), count) - begin();
        gathered_.front() = '*';
    }

    void write(std::span<const argument> all) {
        char* at = gathered_.data() + used_;
        for (const argument& one : all) {
            const std::size_t most = most_characters(one);
            if (header_room + most + 2 > static_cast<std::size_t>(end() - at)) {
                used_ = at - begin();
                flush();
                at = gathered_.data();
                if (header_room + most + 2 > gathered_.size()) {
                    add_long(one);
                    continue;
                }
            }
            at = put_end_of_line(one.kind_ == argument::kind::number ? put_value(at, one.number_) : put_text(at, one));
        }
        used_ = at - begin();
    }

    void flush() {
        out_.append(gathered_.data(), static_cast<std::size_t>(used_));
        used_ = 0;
    }

private:
    const char* begin() const noexcept { return gathered_.data(); }
    const char* end() const noexcept { return gathered_.data() + gathered_.size(); }

    static std::size_t size_of(const argument& text) noexcept {
        const std::size_t size = text.text_.size() + text.ending_.size();
        return text.kind_ == argument::kind::enclosed ? size + 1 : size;
    }
    static std::size_t most_characters(const argument& one) noexcept {
        return one.kind_ == argument::kind::number ? most_digits : size_of(one);
    }

    static char* put_text(char* at, const argument& one) noexcept {
        at = put_header(at, size_of(one));
        if (one.kind_ == argument::kind::text) return put(at, one.text_);
        if (one.kind_ == argument::kind::enclosed) *at++ = one.opening_;
        return put(put(at, one.text_), one.ending_);
    }

    // Half of the numbers of a lock's cycle have one digit.
    static char* put_value(char* at, std::int64_t value) noexcept {
        if (value >= 0 && value < 10) {
            std::memcpy(at, "$1\r\n", 4);
            at[4] = digit(static_cast<std::size_t>(value));
            return at + 5;
        }
        const bool negative = value < 0;
        const std::uint64_t amount =
            negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
        const std::size_t digits = digits_of(amount);
        at = put_header(at, digits + (negative ? 1 : 0));
        if (negative) *at++ = '-';
        put_number(at, amount, digits);
        return at + digits;
    }

    // More than is gathered.
    void add_long(const argument& one) {
        used_ = put_header(gathered_.data(), size_of(one)) - begin();
        flush();
        if (one.kind_ == argument::kind::enclosed) out_ += one.opening_;
        out_ += one.text_;
        out_ += one.ending_;
        out_ += "\r\n";
    }

    std::string& out_;
    std::ptrdiff_t used_ = 0;
    std::array<char, 512> gathered_;
};

void append_command(std::string& out, std::span<const argument> all) {
    HOLDFAST_ASSERT(!all.empty());
    argument_writer writer(out);
    writer.array_of(all.size());
    writer.write(all);
    writer.flush();
}

void append_command(std::string& out, std::initializer_list<argument> all) {
    append_command(out, std::span(all.begin(), all.size()));
}

void append_arguments(std::string& out, std::span<const argument> rest) {
    argument_writer writer(out);
    writer.write(rest);
    writer.flush();
}

void append_head(std::string& out, std::size_t argument_count, std::initializer_list<argument> first) {
    HOLDFAST_ASSERT(first.size() <= argument_count);
    argument_writer writer(out);
    writer.array_of(argument_count);
    writer.write(std::span(first.begin(), first.size()));
    writer.flush();
}

std::string encoded_command(std::initializer_list<argument> all) {
    std::string out;
    append_command(out, all);
    return out;
}

}  // namespace holdfast::redis
