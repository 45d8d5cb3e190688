-- Step: read the server's clock, as a number and as a text.
local clock = redis.call('TIME')
now_us = clock[1] * 1000000 + clock[2]
now_text = clock[1] .. string.sub('00000' .. clock[2], -6)
