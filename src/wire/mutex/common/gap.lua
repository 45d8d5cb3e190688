-- Shared by the scripts of this kind that serve the queue: the key of the gap, if other programs use the lock, too. A
-- lock with notes has none: it names its own key again there, which is always here while a Cluster moves the slot.
local has_gap = KEYS[5] ~= nil and KEYS[5] ~= KEYS[1]
local function read_gap() return redis.call('GET', KEYS[5]) end
local function write_gap(text) redis.pcall('SET', KEYS[5], text, 'PX', 10000) end
--@include common/gap.lua
