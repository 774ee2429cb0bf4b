import type { Tools } from 'heddle'

export interface Caller {
  id: string
}

/** Says who calls on all routes of {{routes}}: `context.user`, null for a stranger. It is asked where something reads that. */
export default ({ auth, http }: Tools) =>
  http.identify<Caller>(
    async ({ headers }) => {
      const [, token] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? []
      const claims = token === undefined ? null : await auth.validateToken(token)
      return claims && { id: claims.sub }
    },
    { schemes: ['bearer'] },
  )
