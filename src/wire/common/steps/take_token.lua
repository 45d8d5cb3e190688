-- Step: the next token becomes the mark.
local last = math.max(mark or 0, floor)
if proposal and proposal > last and math.abs(proposal - now_us) <= 1000000 then
    mark = string.format('%.0f', proposal)
    proposal = proposal + 1
else
    mark = now_us > last and now_text or string.format('%.0f', last + 1)
end
