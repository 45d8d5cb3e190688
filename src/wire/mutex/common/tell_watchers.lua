-- Shared by the mutex scripts that change what watchers see, behind their fast paths.

-- Watchers (mutex/watch) are an entry that is not in the queue. The lengths of both do not show it: other programs'
-- waiters are in the queue and have no entry.
local watch = entries > 0 and redis.call('HGET', KEYS[3], 'watch') or nil
local tell_watchers
if watch then
--@include common/watchers.lua
    entries = entries - 1
    -- One message for each client.
    tell_watchers = function()
        local texts, channels = {}, {}
        for _, _, until_us, who, channel in each_watcher(watch) do
            if until_us > now_us then
                if not texts[channel] then
                    texts[channel] = {'changed'}
                    channels[#channels + 1] = channel
                end
                table.insert(texts[channel], who)
            end
        end
        for _, channel in ipairs(channels) do tell(channel, table.concat(texts[channel], ' ')) end
    end
end
