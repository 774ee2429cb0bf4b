import { openApiDocument, plugin } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { JSON_TYPE, KeptDocument } from '../kept-document.ts'

const options = {
  tags: ['system'],
  summary: 'The HTTP interface as an OpenAPI 3.1 document',
  description: 'All routes with their schemas, and the answers of the runtime itself.',
}

/** The routes of this process as an OpenAPI document. */
export default plugin(
  ({ config, http, registry }) => {
    const document = new KeptDocument(
      async () => ({
        routes: await registry.getRoutes(),
        info: await apiInfo(config),
        url: registry.getSystemDump().listener?.application?.url,
      }),
      ({ routes, info, url }) => openApiDocument(routes, info, url),
    )
    http.get('/system/openapi.json', options, async (_data, context) => {
      context.sendBinary(await document.read(), JSON_TYPE)
    })
  },
  { thread: 'primary' },
)
