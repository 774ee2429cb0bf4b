import * as Sentry from '@sentry/node'

export default () => async () => {
  const id = Sentry.captureException(new Error('woven wrongly'))
  if (!(await Sentry.flush(5_000))) throw new Error('It was not sent')
  return id.length
}
