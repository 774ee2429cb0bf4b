import { z } from 'zod'
import { plugin } from 'heddle'

const options = {
{{schemas}}{{status}}  tags: ['{{domain}}'],
  summary: '{{summary}}',
}

/** `{{method}} {{path}}`: {{purpose}}. */
export default plugin(({ http, logger }) => {
  http.{{register}}('{{path}}', options, async ({ {{fields}} }, context) => {
    logger.info('{{summary}}', { {{fields}}, request_id: context.requestId })
    return { success: true, data: {{data}} }
  })
})
