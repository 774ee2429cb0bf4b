import { createHash, randomUUID } from 'node:crypto'
import type { Claims, HttpContext, Tools, Tx } from '#heddle'

/** `<session>.<secret>`. */
const REFRESH_TOKEN = /^([0-9a-f-]{36})\.([\w-]{43})$/
/** Access tokens of a session that have not expired; with one more, the oldest is revoked. */
const MAX_ACCESS = 20

/** What a client gets: a short token for each request, and one with which it gets the next pair. */
export interface Grant {
  token: string
  /** Seconds. */
  expires_in: number
  refresh_token: string
}

/** What an access token is revoked by. */
type Access = Pick<Claims, 'jti' | 'iss' | 'exp'>

/**
 * Sessions of users. Each refresh token works once: the next one takes its place. One that comes a second time was stolen, or its answer was
 * lost; nobody can tell, so the whole session ends, with all of its access tokens.
 */
export class Sessions {
  readonly #auth: Tools['auth']
  readonly #db: Tools['db']
  readonly #sessionSec: number
  readonly #issuer: string

  constructor({ auth, config, db }: Pick<Tools, 'auth' | 'config' | 'db'>) {
    this.#auth = auth
    this.#db = db
    this.#sessionSec = config.get('SESSION_TTL_SEC', { default: 2_592_000 })
    this.#issuer = config.get('AUTH_ISSUER', { default: '' })
  }

  /** The claims of a good access token of this service; null for another issuer's, whose `sub` is somebody else, even if it is the same. */
  readonly validateToken = async (token: string): Promise<Claims | null> => {
    const claims = await this.#auth.validateToken(token)
    return claims !== null && (claims.iss ?? '') === this.#issuer ? claims : null
  }

  async begin(userId: string): Promise<Grant> {
    const id = randomUUID()
    const { grant, access, secretHash } = await this.#grant(id, userId)
    await this.#db.execute('DELETE FROM sessions WHERE user_id = $1 AND expires_at < $2', [userId, isoTime()])
    await this.#db.execute(
      'INSERT INTO sessions (id, user_id, secret_hash, access, expires_at) VALUES ($1, $2, $3, $4, $5)',
      [id, userId, secretHash, JSON.stringify([access]), isoTime(this.#sessionSec)],
    )
    return grant
  }

  /** The next pair; null for a refresh token that is not good (any more). */
  async renew(refreshToken: string): Promise<Grant | null> {
    const given = parsed(refreshToken)
    if (given === null) return null
    const session = await this.#db.queryOne<{ user_id: string; access: string }>(
      'SELECT user_id, access FROM sessions WHERE id = $1 AND expires_at > $2',
      [given.id, isoTime()],
    )
    if (session === null) return null
    const { grant, access, secretHash } = await this.#grant(given.id, session.user_id)
    const live = (JSON.parse(session.access) as Access[]).filter(({ exp }) => exp * 1000 > Date.now())
    const kept = [...live, access].slice(-MAX_ACCESS)
    // Of two that come at once with the same token one finds it gone.
    const { rowCount } = await this.#db.execute(
      'UPDATE sessions SET secret_hash = $1, access = $2, expires_at = $3 WHERE id = $4 AND secret_hash = $5',
      [secretHash, JSON.stringify(kept), isoTime(this.#sessionSec), given.id, hashOf(given.secret)],
    )
    if (rowCount === 0) {
      await this.#end(given.id)
      return null
    }
    await this.revoke(live.filter((each) => !kept.includes(each)))
    return grant
  }

  /** Ends the session of a refresh token, whichever of the session it is. */
  async end(refreshToken: string): Promise<void> {
    const given = parsed(refreshToken)
    if (given !== null) await this.#end(given.id)
  }

  /**
   * Deletes all sessions of a user in the transaction that deletes him.
   * @returns their access tokens, for `revoke` when it is committed
   */
  async deleteAll(userId: string, tx: Tx): Promise<Access[]> {
    const sql = 'DELETE FROM sessions WHERE user_id = $1 RETURNING access'
    const { rows } = await tx.execute<{ access: string }>(sql, [userId])
    return rows.flatMap(({ access }) => JSON.parse(access) as Access[])
  }

  async #end(id: string): Promise<void> {
    const sql = 'DELETE FROM sessions WHERE id = $1 RETURNING access'
    const { rows } = await this.#db.execute<{ access: string }>(sql, [id])
    for (const { access } of rows) await this.revoke(JSON.parse(access))
  }

  async revoke(tokens: readonly Access[]): Promise<void> {
    await Promise.all(tokens.map((each) => this.#auth.revokeToken(each)))
  }

  async #grant(id: string, userId: string): Promise<{ grant: Grant; access: Access; secretHash: string }> {
    const token = await this.#auth.createToken({ sub: userId })
    const { jti, iss, iat, exp } = (await this.#auth.validateToken(token))!
    const secret = this.#auth.createSecret()
    return {
      grant: { token, expires_in: exp - iat!, refresh_token: `${id}.${secret}` },
      access: { jti, iss, exp },
      secretHash: hashOf(secret),
    }
  }
}

/** No cache on the way may keep an answer with tokens (RFC 6749, section 5.1). */
export function keepOutOfCaches(context: HttpContext): void {
  context.setHeader('cache-control', 'no-store')
}

function parsed(refreshToken: string): { id: string; secret: string } | null {
  const match = REFRESH_TOKEN.exec(refreshToken)
  return match === null ? null : { id: match[1]!, secret: match[2]! }
}

/** It is random and long: nothing slower than SHA-256 is needed. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url')

const isoTime = (fromNowSec = 0): string => new Date(Date.now() + fromNowSec * 1000).toISOString()
