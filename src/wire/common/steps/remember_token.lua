-- Step: write the mark.
local ahead_ms = mark ~= now_text and math.ceil((mark - now_us) / 1000) or 0
redis.call('SET', KEYS[4], mark, 'PX', ahead_ms > 0 and string.format('%.0f', ahead_ms + retention) or retention)
