import { type Claims, HttpError, type Tools } from 'heddle'

/** Lets through only tokens of admins. @throws HttpError 403 for others; null is answered with 401 */
export const admins =
  (auth: Tools['auth']) =>
  async (token: string): Promise<Claims | null> => {
    const claims = await auth.validateToken(token)
    if (claims !== null && claims.role !== 'admin') throw new HttpError(403, 'Admins only', { code: 'ADMINS_ONLY' })
    return claims
  }
