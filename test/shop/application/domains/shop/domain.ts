import type { Tools } from 'heddle'

export interface User {
  id: string
  isAdmin: boolean
}

/** Every route of the shop knows who calls, by the token that its `authValidator` has accepted: nobody where it has none. */
export default ({ http }: Tools) =>
  http
    .before<{ user: User | null }>(({ _auth }, context) => {
      context.user = _auth === undefined ? null : { id: _auth.sub, isAdmin: _auth.role === 'admin' }
    })
    .after((_answer, context) => {
      // What one customer sees belongs into no cache.
      if (context.user) context.setHeader('cache-control', 'no-store')
    })
