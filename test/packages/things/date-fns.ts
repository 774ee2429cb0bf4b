import { addMonths, formatISO } from 'date-fns'

export default () => () => formatISO(addMonths(new Date(2026, 0, 31), 1))
