import { pathToFileURL } from 'node:url'
import { plugin } from '#heddle'

export default plugin(
  ({ config, http }) => {
    http.mountStatic('/', pathToFileURL(config.get('SHELF_DIR', { type: 'string' })))
  },
  { thread: 'primary' },
)
