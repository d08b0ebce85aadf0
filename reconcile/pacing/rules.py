"""The three rules as Valkey runs them, each at once. Instants are whole microseconds.

Arguments stand in the order in which each script names them. `string.format('%.0f')` writes an
instant in full; Lua's own notation would round it to fourteen digits.
"""

from __future__ import annotations

from typing import Final

_FILLED: Final = """
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'failures', 'open_until', 'limited_until')
local now, per_micro, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens, at = tonumber(kept[1]), tonumber(kept[2])
if not tokens then
  tokens, at = burst, now
elseif now > at then
  -- A clock that was set back fills nothing; the bucket goes on when it has caught up.
  tokens, at = math.min(burst, tokens + (now - at) * per_micro), now
end
local function keep(seconds)
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens),
    'at', string.format('%.0f', at))
  redis.call('EXPIRE', KEYS[1], seconds)
end
"""

TAKE: Final = (
    _FILLED
    + """
local failures_max, trial, seconds = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local shut = math.max(tonumber(kept[4]) or 0, tonumber(kept[5]) or 0)
if shut > now then return string.format('%.0f', shut) end
-- A token that lacks no more than doubles round off is whole, or its instant would be this one.
if tokens < 1 - 1e-9 then
  keep(seconds)
  return string.format('%.0f', at + math.ceil((1 - tokens) / per_micro))
end
tokens = tokens - 1
keep(seconds)
if (tonumber(kept[3]) or 0) >= failures_max then
  -- One question tries an account that was left alone; the others wait for what it brings.
  redis.call('HSET', KEYS[1], 'open_until', string.format('%.0f', now + trial))
end
return '0'
"""
)

SPEND: Final = (
    _FILLED
    + """
-- A reading that took many requests is paid for afterwards, but with no more than a minute's rest.
tokens = math.max(tokens - tonumber(ARGV[4]), -60000000 * per_micro)
keep(ARGV[5])
"""
)

NOTE: Final = """
local now, in_vain, hopeless = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3] == '1'
local why, wait_until, failures_max = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local first, longest, seconds = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
-- What the provider itself asked for is kept whatever other questions bring.
local limited = math.max(tonumber(redis.call('HGET', KEYS[1], 'limited_until')) or 0, wait_until)
if limited > 0 then
  redis.call('HSET', KEYS[1], 'limited_until', string.format('%.0f', limited))
end
if not in_vain then
  redis.call('HDEL', KEYS[1], 'failures', 'open_until')
  if limited <= now then redis.call('HDEL', KEYS[1], 'why') end
else
  local failures = redis.call('HINCRBY', KEYS[1], 'failures', 1)
  redis.call('HSET', KEYS[1], 'why', why)
  if hopeless and failures < failures_max then
    failures = failures_max
    redis.call('HSET', KEYS[1], 'failures', failures)
  end
  local over = failures - failures_max
  if over >= 0 then
    local alone = math.min(first * 2 ^ math.min(over, 10), longest)
    redis.call('HSET', KEYS[1], 'open_until', string.format('%.0f', now + alone))
  end
end
redis.call('EXPIRE', KEYS[1], seconds)
"""
