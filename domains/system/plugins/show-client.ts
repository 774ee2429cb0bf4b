import { clientText, plugin } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf } from '../configuration.ts'
import { KeptDocument } from '../kept-document.ts'

const TYPE = 'text/plain; charset=utf-8'

const options = {
  tags: ['system'],
  summary: 'A typed client as one TypeScript file',
  description: 'With `system=true` also for the routes under `/system`.',
}

/** A typed client of the routes and events of this process, as one TypeScript file; with `?system=true` also of those of the system itself. */
export default plugin(
  ({ config, http, registry }) => {
    const domainsDirs = domainsDirsOf(config)
    const gather = async () => ({ routes: await registry.getRoutes(), title: (await apiInfo(config)).title })
    const own = new KeptDocument(gather, (facts) => clientText(facts.title, facts.routes, domainsDirs, isOwn))
    const whole = new KeptDocument(gather, (facts) => clientText(facts.title, facts.routes, domainsDirs))
    http.get('/system/client.ts', options, async ({ system }, context) => {
      context.sendBinary(await (system === 'true' ? whole : own).read(), TYPE)
    })
  },
  { thread: 'primary' },
)

const isOwn = (domain: string) => domain !== 'system'
