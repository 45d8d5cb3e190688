-- Shared by the semaphore's scripts: the text of a grant, "<permits> <token>".

local function permits_of(grant) return tonumber(grant and string.match(grant, '^([1-9]%d*) [1-9]%d*$') or nil) end
local function token_of(grant) return string.match(grant, ' ([1-9]%d*)$') end
