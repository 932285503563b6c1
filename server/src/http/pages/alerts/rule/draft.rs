//! A draft of a rule as the fields of its form, and from the URL of a new rule.

use domain::alerts::{ConditionKind, Draft, FieldError, moved_to};

pub(super) type Fields = Vec<(String, String)>;

pub(super) fn find<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map_or("", |(_, value)| value.trim())
}

/// `?condition=contention&prefix=jobs/&backends=redis&threshold=60%`: a chart's way to "alert me above this"; a threshold by
/// its own name as in the form, `with.longer_than=90s`.
pub(super) fn new_draft(pairs: &[(String, String)]) -> (Draft, Vec<FieldError>) {
    let kind = ConditionKind::parse(find(pairs, "condition"));
    let base = kind.and_then(|kind| {
        domain::alerts::builtin()
            .into_iter()
            .find(|rule| rule.condition.kind == kind)
    });
    let mut draft = base.as_ref().map(Draft::from).unwrap_or_default();
    draft.id = String::new();
    draft.prefix = find(pairs, "prefix").to_owned();
    let backend = ["backends", "backend"]
        .map(|name| find(pairs, name).to_owned())
        .into_iter()
        .find(|name| !name.is_empty());
    draft.backends = backend.into_iter().collect();
    let value = find(pairs, "threshold");
    if let Some(main) = kind
        .and_then(ConditionKind::main_param)
        .filter(|_| !value.is_empty())
    {
        draft.with.insert(main.name.to_owned(), value.to_owned());
    }
    for param in kind
        .map(ConditionKind::info)
        .into_iter()
        .flat_map(|info| info.params)
    {
        let value = find(pairs, &format!("with.{}", param.name));
        if !value.is_empty() {
            draft.with.insert(param.name.to_owned(), value.to_owned());
        }
    }
    if base.is_none() {
        draft.condition = find(pairs, "condition").to_owned();
    } else if !draft.prefix.is_empty() {
        draft.name = format!("{}, {}", draft.name, draft.prefix);
    }
    let faults = if draft.condition.is_empty() || kind.is_some() {
        Vec::new()
    } else {
        vec![FieldError::new(
            "condition",
            "is not a condition",
            "choose one below",
        )]
    };
    (draft, faults)
}

/// Fields of the form that [`draft_of`] reads back.
pub(super) fn fields_of(draft: &Draft) -> Fields {
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut fields = vec![
        text("name", &draft.name),
        text("severity", &draft.severity),
        text("for", draft.for_.as_deref().unwrap_or_default()),
        text(
            "keep_firing_for",
            draft.keep_firing_for.as_deref().unwrap_or_default(),
        ),
        text("backends", &draft.backends.join(", ")),
        text("prefix", &draft.prefix),
        text("owner", &draft.owner),
        text("safety", &draft.safety),
        text("group_by", &draft.group_by.clone().unwrap_or_default().join(", ")),
        text("receivers", &draft.receivers.join(", ")),
        text("runbook", &draft.runbook),
        text("template", &draft.template),
        text("enabled", if draft.enabled { "yes" } else { "" }),
    ];
    let with = draft.with.iter();
    fields.extend(with.map(|(name, value)| (format!("with.{name}"), value.clone())));
    fields
}

pub(super) fn draft_of(fields: &[(String, String)]) -> Draft {
    let list = |name: &str| -> Vec<String> {
        let items = find(fields, name).split(',').map(|item| item.trim().to_owned());
        items.filter(|item| !item.is_empty()).collect()
    };
    let raw = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.clone())
    };
    let text = |name: &str| find(fields, name).to_owned();
    let condition = text("condition");
    let params = ConditionKind::parse(&condition)
        .map(|kind| kind.info().params)
        .unwrap_or_default();
    let with = params.iter().filter_map(|param| {
        let value = raw(&format!("with.{}", param.name))?;
        Some((param.name.to_owned(), value))
    });
    Draft {
        id: text("id"),
        name: text("name"),
        severity: text("severity"),
        for_: raw("for"),
        keep_firing_for: raw("keep_firing_for"),
        backends: list("backends"),
        prefix: text("prefix"),
        owner: text("owner"),
        safety: text("safety"),
        group_by: Some(list("group_by")),
        receivers: list("receivers"),
        runbook: text("runbook"),
        template: text("template"),
        enabled: text("enabled") == "yes",
        with: with.collect(),
        condition,
    }
}

/// State of the threshold line in the preview's chart.
pub(super) enum Line {
    Unmoved,
    /// Its threshold is in the draft now.
    Moved(String),
    /// The line was moved and a number was typed: the number counts.
    Overridden,
}

/// Puts the value of a moved line into the number field, unless a number was typed.
pub(super) fn apply_moved_line(fields: &mut Fields) -> Line {
    let kind = ConditionKind::parse(find(fields, "condition"));
    let Some(main) = kind.and_then(ConditionKind::main_param) else {
        return Line::Unmoved;
    };
    let suffix = find(fields, "line.unit").to_owned();
    let [at, was] = ["line", "line.was"].map(|name| moved_to(main, find(fields, name), &suffix));
    let (Some(at), Some(was)) = (at, was) else {
        return Line::Unmoved;
    };
    let name = format!("with.{}", main.name);
    let input = find(fields, &name);
    if at == was || input == main.unit.text(at) {
        return Line::Unmoved;
    }
    if input != find(fields, "line.typed") {
        return Line::Overridden;
    }
    fields.retain(|(field, _)| *field != name);
    fields.push((name, main.unit.text(at)));
    Line::Moved(main.unit.format(at))
}
