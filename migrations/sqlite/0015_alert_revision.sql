-- Rises with every change of rules, silences and open alerts: who keeps them in memory asks for it alone.

ALTER TABLE alert_evaluator ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
