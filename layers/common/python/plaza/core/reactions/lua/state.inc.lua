-- state: the saved state of one actor, without MySQL. Needs bloom.
-- Returns the state of an actor that is neither in the outbox nor in recent, '0' off or nil when only MySQL has it; and
-- the filter, which is '0' when the filter cannot be used.
local function state_outside_recent(actor, filter, bloom)
  if filter == 'complete' then return '0', filter end
  if filter == '0' or bloom_has(bloom, tonumber(filter), actor) then return nil, filter end
  -- Without its seal the filter lost its key.
  if redis.call('GETBIT', bloom, filter) == 0 then return nil, '0' end
  return '0', filter
end
