// Where shares take turns: which rows may be next, and which a process may have had in hand when it died.
import type { Queryable } from '../../contracts/db.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { IS_READY_OF_SHARE } from '../../runtime/event-store/store-tables.ts'

/** The first row of its key, which no dead letter blocks. */
export const IS_HEAD = `(key IS NULL OR (NOT EXISTS (SELECT 1 FROM heddle_delivery AS o WHERE o.grp = heddle_delivery.grp AND o.key = heddle_delivery.key
    AND o.due_ms = 0 AND coalesce(o.place, o.seq) < coalesce(heddle_delivery.place, heddle_delivery.seq))
  AND NOT EXISTS (SELECT 1 FROM heddle_parked AS p WHERE p.grp = heddle_delivery.grp AND p.key = heddle_delivery.key)))`
/** Rows of a share that are looked at together. */
export const SHARE_WINDOW = 1024
/** Maximum number of shares of one priority whose first rows are counted. */
export const SHARES_COUNTED = 10_000

const FIRST = `AND ${IS_READY_OF_SHARE} AND ${IS_HEAD} ORDER BY coalesce(place, seq)`
/** The rows of $4 are counted already. */
const RAISE: Record<StoreDatabase['dialect'], string> = {
  sqlite: `UPDATE heddle_delivery SET crashes = crashes + 1 WHERE seq IN (SELECT d.seq FROM json_each($2) AS k JOIN heddle_delivery AS d
      ON d.seq IN (SELECT seq FROM heddle_delivery WHERE grp = +$1 AND share = k.value ${FIRST} LIMIT +$3))
    AND seq NOT IN (SELECT value FROM json_each($4))`,
  postgres: `UPDATE heddle_delivery SET crashes = crashes + 1 WHERE seq IN (SELECT d.seq FROM json_array_elements_text($2::json) AS k (value)
      CROSS JOIN LATERAL (SELECT seq FROM heddle_delivery WHERE grp = $1 AND share = k.value AND slot = ANY($5::int[]) ${FIRST} LIMIT $3::int) AS d)
    AND NOT seq = ANY($4::bigint[])`,
}

/**
 * Counts the crash for the first rows of each share. Each may have had as many in hand as there was room, divided by all.
 * @param counted rows that are counted already
 * @param most maximum number of rows of a group in hand
 * @param slots on a server: those of the process
 */
export async function raiseOfShares(
  tx: Queryable,
  dialect: StoreDatabase['dialect'],
  group: number,
  shares: readonly string[],
  counted: readonly number[],
  most: number,
  slots: readonly number[] = [],
): Promise<void> {
  if (shares.length === 0) return
  const ofShare = Math.ceil(most / shares.length)
  const list = dialect === 'sqlite' ? JSON.stringify(counted) : `{${counted.join()}}`
  const params = [group, JSON.stringify(shares), ofShare, list]
  await tx.execute(RAISE[dialect], dialect === 'sqlite' ? params : [...params, `{${slots.join()}}`])
}
