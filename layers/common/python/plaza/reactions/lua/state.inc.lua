-- state: the saved state of one actor, without MySQL. Needs bloom.
-- Returns the state of an actor that is neither in the outbox nor in recent: '0' off, nil when only MySQL has it.
local function state_outside_recent(actor, filter, bloom)
  if filter == 'complete' then return '0' end
  if filter ~= '0' and not bloom_has(bloom, tonumber(filter), actor) then return '0' end
  return nil
end
