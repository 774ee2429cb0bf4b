import { plugin } from '#heddle'
import { PageFiles } from '../page-files.ts'

/** The page at `/system/docs`: it shows `/system/openapi.json`, and sends requests to try them. */
export default plugin(
  async ({ http }) => {
    const files = await PageFiles.of('docs')
    const page = { tags: ['system'], etag: true }
    http.get(
      '/system/docs',
      {
        ...page,
        summary: 'The interface to read and to try',
        description: 'A page with all routes, their schemas and a form for each.',
      },
      files.showPage,
    )
    http.get(
      '/system/docs/models',
      {
        ...page,
        summary: 'The schemas of bodies and answers',
        description: 'A page with each named schema and where it is used.',
      },
      files.showPage,
    )
    http.get('/system/docs/:file', PageFiles.ROUTE, files.showFile)
  },
  { thread: 'primary' },
)
