import { join } from 'node:path'
import { checkKebab } from './names.ts'
import { applicationFolder, domainFolder, type Workplace } from './workplace.ts'
import type { Scaffold } from './writing.ts'

/** The name under which the hooks of all domains are made. */
const APPLICATION = 'app'

/** `npm run new -- hooks orders`: the `domain.ts` of that domain; `npm run new -- hooks app`: the `app.ts` of all domains. */
export function scaffoldHooks(workplace: Workplace, name: string, within: string | undefined): Scaffold {
  checkKebab('A domain', name, 'orders')
  const isOfAll = name === APPLICATION
  const path = isOfAll
    ? join(applicationFolder(workplace, within), 'app.ts')
    : join(domainFolder(workplace, name, within), 'domain.ts')
  const module = isOfAll ? '../../app.ts' : '../domain.ts'
  return {
    files: [{ path, text: hooks(isOfAll ? 'all domains but system' : `the domain ${name}`) }],
    next: [
      "to refuse strangers, after identify: .before((_data, { user }) => { if (user === null) throw new HttpError(401, 'Log in first') })",
      `in a plugin, for the type of context.user: import type hooks from '${module}', and ToolsIn<typeof hooks> instead of Tools`,
    ],
  }
}

const hooks = (routes: string): string => `\
import type { Tools } from 'heddle'

export interface Caller {
  id: string
}

/** Says who calls on all routes of ${routes}: \`context.user\`, null for a stranger. It is asked where something reads that. */
export default ({ auth, http }: Tools) =>
  http.identify<Caller>(
    async ({ headers }) => {
      const [, token] = /^Bearer (\\S+)$/.exec(headers.authorization ?? '') ?? []
      const claims = token === undefined ? null : await auth.validateToken(token)
      return claims && { id: claims.sub }
    },
    { schemes: ['bearer'] },
  )
`
