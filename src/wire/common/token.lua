-- Shared by the lock scripts: the server's clock and fencing tokens. The fence KEYS[4] holds the last token, the mark.
--
-- A token is greater than every earlier token of this lock. It is the server's time in us; or one more than the mark,
-- if the clock was set back or two grants fall into one microsecond; or one more than the caller's floor, if data was
-- lost. Or it is the caller's proposal, so that several servers grant the same token: if that is greater than the last
-- token, and within a second of this server's clock, because a client with a wrong clock must not carry the tokens
-- away.
--
-- The fast paths paste the steps, because functions cost time. They also put the time together from two texts: that
-- costs a fifth of %.0f. (tostring() would write 1.7e+15.)

--@include common/numbers.lua

local now_us, now_text -- the server's time
local mark             -- the last token, or false; tokens are compared as texts, so "007" and "0" are none
local proposal         -- the token that the caller proposes, or nil; set by the script

--@paste common/steps/read_clock.lua
--@paste common/steps/read_mark.lua

-- `marked`: for a marked id (hold_id.lua), a block of tokens; the first is returned.
local function take_token(floor, marked)
    if marked then
--@paste common/steps/take_block.lua
    end
--@paste common/steps/take_token.lua
    return mark
end

-- A proposed token may be ahead of the clock: it is kept for `retention` ms from its own time on.
local function remember_token(retention)
--@paste common/steps/remember_token.lua
end

-- The clock for a caller that proposes tokens: it uses the median of its servers' clocks. A token may be no time.
local function clock_told() return proposal and now_text end
