-- Step: what a message tells the new holder `who`: the verb, and what follows it. `exclusive`: it may use all tokens up
-- to the mark.
local verb, news = 'grant', ' ' .. who .. ' ' .. token
if is_marked(who) then verb, news = 'grant_block', news .. ' ' .. (exclusive and mark or token) .. ' ' .. queued end
