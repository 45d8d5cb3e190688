-- Step: the mark is to cover the tokens that a marked exclusive hold may use from now on: those up to the clock, and up
-- to its wish only where the clock is behind the last token, or the last token is not known any more.
local last = tonumber(mark or 0)
mark = string.format('%.0f', math.max(last, now_us, (last == 0 or last > now_us) and wish or 0))
