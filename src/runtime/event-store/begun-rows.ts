// The rows that handlers begin.
import type { Queryable } from '../../contracts/db.ts'
import type { BegunRow } from '../../transport/store-changes.ts'

const SET_BEGUN =
  "UPDATE heddle_delivery SET uniq = CASE WHEN substr(uniq, 1, 1) = 'w' THEN 'b' || substr(uniq, 2) || ' ' || seq ELSE uniq END"
const AS_BEGUN = 'AND due_ms = 0 RETURNING seq, envelope, payload, expires_ms'
const BEGIN = {
  sqlite: `${SET_BEGUN} WHERE seq IN (SELECT value FROM json_each($1)) ${AS_BEGUN}`,
  postgres: `${SET_BEGUN} WHERE seq = ANY($1::bigint[]) ${AS_BEGUN}`,
} as const

/** Handlers begin these rows: each that is still there and due is no longer alone. */
export async function beginRows(
  tx: Queryable,
  dialect: 'sqlite' | 'postgres',
  seqs: readonly number[],
): Promise<BegunRow[]> {
  if (seqs.length === 0) return []
  const list = dialect === 'sqlite' ? `[${seqs.join(',')}]` : `{${seqs.join(',')}}`
  const { rows } = await tx.execute<{ seq: number; envelope: string; payload: string; expires_ms: number }>(
    BEGIN[dialect],
    [list],
  )
  return rows.map(({ seq, envelope, payload, expires_ms }) => ({
    seq: Number(seq),
    envelope,
    payload,
    expiresMs: Number(expires_ms),
  }))
}
