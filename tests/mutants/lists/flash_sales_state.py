"""Mutants of the scripts of flash sales."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

FLASH_SALES = "tests/integration/flash_sales"
SALES = f"{FLASH_SALES}/test_flash_sales.py"
RECOVERY_LIST = f"{FLASH_SALES}/test_recovery_list.py"
LIFECYCLE = f"{FLASH_SALES}/test_order_lifecycle.py"
WAITLIST = f"{FLASH_SALES}/test_waitlist.py"
PHASES = f"{FLASH_SALES}/test_sale_phases.py"

MUTANTS = [
    *mutants_of(
        "flash_sales/lua/reserve.lua",
        [SALES, WAITLIST, LIFECYCLE],
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return fields[1] and 'STALE_GENERATION' or 'COLD' end",
            "if not fields[1] then return 'COLD' end",
            "A unit is taken from the generation that the caller read.",
        ),
        (
            "phase",
            "local is_open = phase == 'live' and now_us",
            "local is_open = now_us",
            "Only a live sale has units.",
        ),
        (
            "before-opening",
            "phase == 'live' and now_us >= opens_us and",
            "phase == 'live' and",
            "No unit is taken before the sale opens.",
        ),
        (
            "after-closing",
            "now_us >= opens_us and now_us < closes_us",
            "now_us >= opens_us",
            "No unit is taken after the sale closes.",
        ),
        (
            "oversold",
            "local is_free = stock > 0 and offered",
            "local is_free = offered",
            "No more units are taken than there are.",
        ),
        (
            "oversold-by-one",
            "not has_offer and (stock <= 0 or",
            "not has_offer and (stock < 0 or",
            "No more units are taken than there are.",
        ),
        (
            "waitlist-skipped",
            "and offered == '0' and waiting == '0'",
            "and offered == '0'",
            "A unit that returns belongs to the waitlist.",
        ),
        (
            "offer-not-used",
            "local is_free = stock > 0 and offered == '0' and waiting",
            "local is_free = stock > 0 and waiting",
            "A buyer with an offer takes the unit of the offer.",
        ),
        (
            "sold-out-skips-waitlist",
            "(stock <= 0 or waiting ~= '0') then code = 'SOLD_OUT'",
            "(stock <= 0) then code = 'SOLD_OUT'",
            "While buyers wait, a sale is sold out for others.",
        ),
        (
            "rate",
            "local is_within_limits = early_us <= 0 and pending",
            "local is_within_limits = pending",
            "Orders above the allowed rate are refused.",
        ),
        (
            "pending-limit",
            "and pending < ARGV[5] + 0",
            "",
            "The number of pending orders is limited.",
        ),
        (
            "pending-limit-by-one",
            "and pending < ARGV[5] + 0",
            "and pending <= ARGV[5] + 0",
            "The number of pending orders is at most its limit.",
        ),
        (
            "ended-offer",
            "has_offer = until_us and tonumber(until_us) > now_us",
            "has_offer = until_us",
            "An offer that has ended gives no unit.",
        ),
        (
            "offer-kept",
            "redis.call('ZREM', KEYS[4], buyer)\n  offered = offered - 1",
            "offered = offered - 1",
            "An accepted offer is removed.",
        ),
        (
            "offered-not-counted",
            "redis.call('ZREM', KEYS[4], buyer)\n  offered = offered - 1",
            "redis.call('ZREM', KEYS[4], buyer)",
            "An accepted offer leaves the count of offers.",
        ),
        (
            "stock-not-taken",
            "  stock = stock - 1\n",
            "",
            "Each order takes a unit from the stock.",
        ),
        (
            "second-order",
            "if entry then return 'EXISTS' .. ' ' .. entry end",
            "",
            "The reply to a second order names the first one.",
        ),
        (
            "not-recoverable",
            "redis.call('RPUSH', KEYS[3], ARGV[2] .. ':' .. buyer .. ':' .. now[1])",
            "",
            "A pending order is in the recovery list.",
        ),
        (
            "pending-not-counted",
            "stock, pending + 1, offered",
            "stock, pending, offered",
            "A pending order is counted.",
        ),
        (
            "bucket-not-stored",
            "offered, waiting, full_us))",
            "offered, waiting, was_full_us))",
            "Each order takes a token of the rate.",
        ),
        (
            "burst",
            "local early_us = full_us - now_us - 1000000",
            "local early_us = full_us - now_us",
            "A burst has the orders of a second.",
        ),
        (
            "idle-tokens",
            "math.max(now_us, was_full_us + 0)",
            "(was_full_us + 0)",
            "Tokens that were not used are not saved for longer than a second.",
        ),
        (
            "wait-of-rate",
            "    wait_us = early_us\n",
            "",
            "A refusal by the rate says how long to wait.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/confirm.lua",
        [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
        (
            "cancelled",
            "if not (any_cancelled and redis.call('SISMEMBER', KEYS[4],"
            " order .. ':' .. buyer) == 1) then",
            "if true then",
            "An order that was cancelled after its row was read stays cancelled.",
        ),
        (
            "counted-again",
            "if not entry or string.sub(entry, 1, 8) ~= 'success:' then sold = sold + 1 end",
            "sold = sold + 1",
            "A success that replaces another success of its buyer is not counted.",
        ),
        (
            "pending-stays",
            "if entry and string.sub(entry, 1, 8) == 'pending:' then"
            " from_pending = from_pending + 1 end",
            "",
            "A success leaves the pending orders.",
        ),
        (
            "waits-on",
            "left = left + redis.call('ZREM', KEYS[5], buyer)",
            "",
            "A buyer with a success waits no more.",
        ),
        (
            "offer-stays",
            "accepted = accepted + redis.call('ZREM', KEYS[6], buyer)",
            "",
            "A buyer with a success has no offer.",
        ),
        (
            "sold-not-counted",
            "if sold > 0 then redis.call('HINCRBY', KEYS[1], 'sold', sold) end",
            "",
            "Successes are counted.",
        ),
        (
            "unit-of-offer",
            "from_pending - sold + accepted, 0",
            "from_pending - sold, 0",
            "A success of a buyer with an offer takes the offered unit.",
        ),
        (
            "unit-not-taken",
            "add_to_counts(KEYS[1], from_pending - sold + accepted,",
            "add_to_counts(KEYS[1], accepted,",
            "A success without a pending order takes its unit from the stock.",
        ),
        (
            "list-stays",
            "if from_pending > 0 and from_pending == pending then redis.call('UNLINK', KEYS[3]) end",
            "",
            "The recovery list ends with the last pending order.",
        ),
        (
            "list-ends-early",
            "if from_pending > 0 and from_pending == pending then",
            "if from_pending > 0 then",
            "The recovery list stays while an order is pending.",
        ),
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end",
            "",
            "Successes are recorded in the generation that the caller read.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/release.lua",
        [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end",
            "",
            "A unit returns to the generation that the caller read.",
        ),
        (
            "finalized",
            "if fields[2] == 'finalized' then return {'FINALIZED'} end",
            "",
            "A sale that is over gets no unit back.",
        ),
        (
            "cancelled-not-listed",
            "redis.call('HINCRBY', KEYS[1], 'cancelled',"
            " redis.call('SADD', KEYS[4], order .. ':' .. buyer))",
            "",
            "A cancelled order is listed, so that a late success is refused.",
        ),
        (
            "returned-twice",
            "if not was_success and entry ~= 'pending:' .. order then return {'UNCHANGED'} end",
            "",
            "A unit is returned once.",
        ),
        (
            "failure-of-success",
            "local was_success = cancelled and entry",
            "local was_success = entry",
            "The failure of an order that is a success returns no unit.",
        ),
        (
            "buyer-keeps-order",
            "redis.call('HDEL', KEYS[2], buyer)",
            "",
            "A buyer whose order failed may order again.",
        ),
        (
            "sold-stays",
            "redis.call('HINCRBY', KEYS[1], 'sold', -1)",
            "",
            "A cancelled success is not counted as sold.",
        ),
        (
            "list-stays",
            "redis.call('UNLINK', KEYS[3]) -- none is pending any more",
            "",
            "The recovery list ends with the last pending order.",
        ),
        (
            "list-ends-early",
            "elseif pending == 1 then",
            "else",
            "The recovery list stays while an order is pending.",
        ),
        (
            "pending-of-success",
            "was_success and 0 or -1",
            "-1",
            "A cancelled success was not pending.",
        ),
        (
            "not-offered",
            "make_offers(KEYS[1], KEYS[5], KEYS[6], tonumber(ARGV[5]))",
            "",
            "A unit that returns is offered to the waitlist.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/join.lua",
        [WAITLIST],
        (
            "with-order",
            "if redis.call('HEXISTS', KEYS[2], buyer) == 0 and not",
            "if not",
            "A buyer with an order does not wait.",
        ),
        (
            "with-offer",
            "and not redis.call('ZSCORE', KEYS[4], buyer) then",
            "then",
            "A buyer with an offer does not wait.",
        ),
        (
            "joined-again",
            "redis.call('ZADD', KEYS[3], 'NX', seq, buyer)",
            "redis.call('ZADD', KEYS[3], seq, buyer)",
            "A buyer stays at the first place.",
        ),
        (
            "not-counted",
            "add_to_counts(KEYS[1], 0, 0, 0, added)",
            "",
            "Buyers who wait are counted.",
        ),
        (
            "not-offered",
            "make_offers(KEYS[1], KEYS[3], KEYS[4], tonumber(ARGV[2]))",
            "",
            "A unit in stock is offered to a buyer who joins.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/leave.lua",
        [WAITLIST],
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end",
            "",
            "A place is given up in the generation that the caller read.",
        ),
        (
            "running-offer-ends",
            "if until_us and (ARGV[3] == '0' or tonumber(until_us) <= now_us) then",
            "if until_us then",
            "An offer that has not ended stays.",
        ),
        (
            "place-lost",
            "if ARGV[3] == '0' then left = left + redis.call('ZREM', KEYS[2], buyer) end",
            "left = left + redis.call('ZREM', KEYS[2], buyer)",
            "The end of an offer leaves a place that its buyer took since.",
        ),
        (
            "unit-lost",
            "add_to_counts(KEYS[1], freed, 0, 0 - freed, 0 - left)",
            "add_to_counts(KEYS[1], 0, 0, 0 - freed, 0 - left)",
            "The unit of an offer that ends returns to the stock.",
        ),
        (
            "left-still-waits",
            "0 - freed, 0 - left)",
            "0 - freed, 0)",
            "A buyer who leaves is not counted.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/offer.inc.lua",
        [WAITLIST, LIFECYCLE],
        (
            "more-than-stock",
            "math.min(stock, waiting, 100)",
            "math.min(waiting, 100)",
            "No more units are offered than there are in stock.",
        ),
        (
            "unbounded",
            "math.min(stock, waiting, 100)",
            "math.min(stock, waiting)",
            "A call makes at most 100 offers.",
        ),
        (
            "phase",
            "if fields[1] ~= 'live' or units <= 0",
            "if units <= 0",
            "Units are offered while the sale is live.",
        ),
        (
            "closed",
            "or now_us >= tonumber(fields[4]) then return 0 end",
            "then return 0 end",
            "Units are offered while the sale is open.",
        ),
        (
            "before-opening",
            "or now_us < tonumber(fields[3]) or",
            "or",
            "Units are not offered before the sale opens.",
        ),
        (
            "longer-than-sale",
            "math.min(now_us + accept_us, tonumber(fields[4]))",
            "now_us + accept_us",
            "An offer ends with the sale.",
        ),
        (
            "not-counted",
            "add_to_counts(state, 0 - units, 0, units, 0 - units)",
            "add_to_counts(state, 0 - units, 0, 0, 0 - units)",
            "Offers are counted.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/load.lua",
        [SALES],
        (
            "begun-again",
            "if not redis.call('HGET', KEYS[1], 'generation') then",
            "if true then",
            "A generation that exists is left unchanged.",
        ),
        (
            "no-drain",
            "now[1] * 1000000 + now[2] + ARGV[5])",
            "now[1] * 1000000 + now[2])",
            "A sale waits for older orders in the queue.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/open.lua",
        [PHASES, SALES],
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return 'STALE_GENERATION' end",
            "",
            "A load that another one has replaced opens nothing.",
        ),
        (
            "live",
            "if fields[2] == 'live' then return 'LIVE' end",
            "",
            "A live generation stays live.",
        ),
        (
            "withdrawn",
            "if fields[2] == 'withdrawn' then return 'WITHDRAWN' end",
            "",
            "A voucher that was withdrawn meanwhile does not open.",
        ),
        (
            "cursor-back",
            "if ARGV[2] > fields[4] then redis",
            "if true then redis",
            "The cursor of a load never moves back.",
        ),
        (
            "drain-skipped",
            "if ARGV[3] == '1' or now[1] * 1000000 + now[2] >= tonumber(fields[3]) then",
            "if true then",
            "A sale opens when the queue has no older orders.",
        ),
        (
            "drain-always",
            "if ARGV[3] == '1' or now[1]",
            "if now[1]",
            "A sale opens at once when the queue is empty.",
        ),
        (
            "drain-forever",
            "if ARGV[3] == '1' or now[1] * 1000000 + now[2] >= tonumber(fields[3]) then",
            "if ARGV[3] == '1' then",
            "A sale opens at the end of the longest drain.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/overdue.lua",
        [RECOVERY_LIST],
        (
            "generation",
            "if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end",
            "",
            "Orders of another generation are not recovered.",
        ),
        (
            "grace",
            "* 1000000 > due_us then break end",
            "* 1000000 > due_us + ARGV[2] then break end",
            "An order waits for its consumer before it is recovered.",
        ),
        (
            "one-more",
            "redis.call('LRANGE', KEYS[2], 0, ARGV[3] - 1)",
            "redis.call('LRANGE', KEYS[2], 0, ARGV[3])",
            "At most the limit of entries is returned.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/recover.lua",
        [RECOVERY_LIST],
        (
            "generation",
            "if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end",
            "",
            "Orders of another generation are not recovered.",
        ),
        (
            "not-pending",
            "if is_pending(buckets[i - 1], buyer, order) then",
            "if true then",
            "Only pending orders are recovered.",
        ),
        (
            "another-was-first",
            "if entry ~= entries[i - 1] then break end -- another process was first",
            "",
            "Two recoveries at once move each entry once.",
        ),
        (
            "not-removed",
            "if removed > 0 then redis.call('LTRIM', KEYS[2], removed, -1) end",
            "",
            "Entries of decided orders leave the list.",
        ),
        (
            "not-again",
            "if #again > 0 then redis.call('RPUSH', KEYS[2], unpack(again)) end",
            "",
            "A pending order is recovered again after the grace.",
        ),
    ),
    *mutants_of(
        "flash_sales/lua/withdraw.lua",
        [PHASES, SALES],
        (
            "finalized",
            "or fields[2] == 'finalized' then",
            "then",
            "A finalized sale stays finalized.",
        ),
        (
            "generation",
            "if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end",
            "",
            "The phase of the generation that the caller read changes.",
        ),
        (
            "live-loads-again",
            "elseif fields[2] == 'withdrawn' then",
            "elseif true then",
            "Only a withdrawn sale is loaded again.",
        ),
        (
            "loads-from-middle",
            "'phase', 'loading', 'cursor', 0)",
            "'phase', 'loading')",
            "A withdrawn sale that returns is loaded from the beginning.",
        ),
    ),
]
