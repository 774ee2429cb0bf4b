import { asyncApiDocument, plugin, scanEvents, type TopologyEntry } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf } from '../configuration.ts'
import { JSON_TYPE, KeptDocument } from '../kept-document.ts'

type Parties = Record<string, Pick<TopologyEntry, 'emitters' | 'subscribers'>>

const options = {
  tags: ['system'],
  summary: 'The events as an AsyncAPI 3.0 document',
  description: 'Who publishes each event, who subscribes, and what is in it.',
}

/** The events of this process as an AsyncAPI document: events that contracts or sources name, and events that have fired. */
export default plugin(
  ({ config, event_bus, http }) => {
    const domainsDirs = domainsDirsOf(config)
    const document = new KeptDocument(
      async () => ({
        parties: await partiesOf(await event_bus.getTopology(), domainsDirs),
        info: await apiInfo(config),
      }),
      ({ parties, info }) => asyncApiDocument(parties, domainsDirs, info),
    )
    http.get('/system/asyncapi.json', options, async (_data, context) => {
      context.sendBinary(await document.read(), JSON_TYPE)
    })
  },
  { thread: 'primary' },
)

async function partiesOf(topology: Parties, domainsDirs: string[]): Promise<Parties> {
  const parties: Parties = {}
  const seen = Object.entries(topology).map(([event, entry]) => ({ event, ...entry }))
  for (const { event, emitters, subscribers } of [...seen, ...(await scanEvents(domainsDirs))]) {
    const known = parties[event]
    parties[event] = {
      emitters: [...new Set([...(known?.emitters ?? []), ...emitters])].sort(),
      subscribers: [...new Set([...(known?.subscribers ?? []), ...subscribers])].sort(),
    }
  }
  return parties
}
