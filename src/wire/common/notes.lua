-- Shared by the scripts that acquire: the notes, texts that holders and waiters give for others to read.
--
-- A note stands in a hash under its hold id from when its owner first waits or holds until the release. So a hand-over
-- leaves it where it is, and scripts that know no notes hand over waiters that have one. A reader asks for the note of
-- one id, and no id is used twice: what a dead holder or waiter left there is told nobody, and goes with the key or by
-- the sweep below.
--
-- A client names the key only if it has a note, or met a holder whose id says that it has one (wire/hold_id.hpp). So
-- nobody else pays for notes, with a call or a key.
--
-- A note is not worth a refusal: where the server does not take it, because it is full or the key is of another type,
-- the lock is granted without.
--
-- The script has set: id, notes (nil: the key is not named).

-- The caller holds the lock or waits for it: its note stays for so long, at least.
local function keep_note(text, ms)
    if type(notes.write(text)) ~= 'number' then return end
    if notes.left_ms() < ms then notes.expire_in(ms) end
    if 4 * (notes.count() - 1) <= 5 * (entries + notes.holders()) then return end
    local all = notes.all()
    for i = 1, #all, 2 do
        local who = all[i]
        local waits = entries > 0 and redis.call('HEXISTS', KEYS[3], who) == 1
        if who ~= id and not waits and not notes.is_holder(who) then notes.remove(who) end
    end
end

local function note_of(who)
    local text = notes and who and notes.read(who)
    return type(text) == 'string' and text or nil
end
