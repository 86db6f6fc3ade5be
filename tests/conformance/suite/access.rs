//! Who may: access reviews, and the words of a refusal.

use super::prelude::*;

checks! {
    review: "a SelfSubjectAccessReview says whether the user may; both answers are 201",
    review_of_a_subresource: "subresource, name and group are part of the question",
    who_am_i: "a SelfSubjectReview names the user and its groups",
    forbidden: "403 is a Status that names user, verb, resource, group and namespace",
    forbidden_everywhere: "it says `at the cluster scope` for a list of all namespaces and for a definition",
    forbidden_subresource: "it names the subresource",
    forbidden_before_anything: "without the right even a malformed request, or an absent object, is 403",
    forbidden_in_core: "the core group is the empty one",
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn allowed(t: &Target, attributes: &Value) -> Result<Value> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let answer = t.post(REVIEWS, &review).await?;
    assert_eq!(answer.code, 201, "{attributes}");
    let answer = answer.ok()?;
    assert_eq!((&answer["kind"], &answer["spec"]), (&review["kind"], &review["spec"]));
    Ok(answer["status"]["allowed"].clone())
}

async fn review(t: Target) -> Result<()> {
    let attributes = json!({"verb": "patch", "group": t.group, "resource": "widgets", "namespace": "default"});
    assert_eq!(allowed(&t, &attributes).await?, true);
    assert_eq!(allowed(&t.as_user("nobody"), &attributes).await?, false);
    Ok(())
}

async fn review_of_a_subresource(t: Target) -> Result<()> {
    let attributes = json!({
        "verb": "patch", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
        "subresource": "status", "name": format!("widgets.{}", t.group),
    });
    assert_eq!(allowed(&t, &attributes).await?, true);
    assert_eq!(allowed(&t.as_user("nobody"), &attributes).await?, false);
    Ok(())
}

async fn who_am_i(t: Target) -> Result<()> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    for user in ["admin", "nobody"] {
        let answer = t.as_user(user).post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await?;
        assert_eq!(answer.code, 201);
        let info = answer.ok()?["status"]["userInfo"].take();
        assert_eq!(info["username"], user);
        let groups = info["groups"].as_array().ok_or("no groups")?;
        assert!(groups.contains(&json!("system:authenticated")), "{info}");
        assert_eq!(groups.contains(&json!("system:masters")), user == "admin", "{info}");
    }
    Ok(())
}

async fn forbidden(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let nobody = t.as_user("nobody");
    let group = &t.group;
    let words = |verb: &str| {
        format!(
            "User \"nobody\" cannot {verb} resource \"widgets\" in API group \"{group}\" in the namespace \"default\""
        )
    };
    let refusal = nobody.get(&w.path("one")).await?.refused(403)?;
    assert_eq!(
        refusal.status,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": format!("widgets.{group} \"one\" is forbidden: {}", words("get")),
            "details": {"name": "one", "group": group, "kind": "widgets"},
        })
    );
    let refusal = nobody.merge(&w.path("one"), &json!({})).await?.refused(403)?;
    assert_eq!(refusal.message(), format!("widgets.{group} \"one\" is forbidden: {}", words("patch")));
    let refusal = nobody.delete(&w.path("one"), &json!({})).await?.refused(403)?;
    assert_eq!(refusal.message(), format!("widgets.{group} \"one\" is forbidden: {}", words("delete")));
    let refusal = nobody.get(&w.list()).await?.refused(403)?;
    assert_eq!(refusal.message(), format!("widgets.{group} is forbidden: {}", words("list")));
    let refusal = nobody.get(&format!("{}?watch=true", w.list())).await?.refused(403)?;
    assert_eq!(refusal.message(), format!("widgets.{group} is forbidden: {}", words("watch")));
    Ok(())
}

async fn forbidden_everywhere(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let nobody = t.as_user("nobody");
    let refusal = nobody.get(&w.all()).await?.refused(403)?;
    assert!(refusal.message().ends_with("at the cluster scope"), "{refusal}");
    let refusal = nobody.get(&w.crd_path()).await?.refused(403)?;
    let words = "User \"nobody\" cannot get resource \"customresourcedefinitions\" in API group \
                 \"apiextensions.k8s.io\" at the cluster scope";
    let name = format!("customresourcedefinitions.apiextensions.k8s.io \"{}\"", w.crd());
    assert_eq!(refusal.message(), format!("{name} is forbidden: {words}"));
    Ok(())
}

async fn forbidden_subresource(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let path = format!("{}/status", w.crd_path());
    let refusal = t.as_user("nobody").merge(&path, &json!({})).await?.refused(403)?;
    assert!(refusal.message().contains("cannot patch resource \"customresourcedefinitions/status\""), "{refusal}");
    Ok(())
}

async fn forbidden_before_anything(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let nobody = t.as_user("nobody");
    nobody.post(&w.list(), &json!([])).await?.refused(403)?;
    nobody.get(&w.path("absent")).await?.refused(403)?;
    nobody.merge(&format!("{}?dryRun=All", w.path("absent")), &json!({})).await?.refused(403)?;
    Ok(())
}

async fn forbidden_in_core(t: Target) -> Result<()> {
    let refusal = t.as_user("nobody").get("/api/v1/namespaces/default/secrets/one").await?.refused(403)?;
    let words = "User \"nobody\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\"";
    assert_eq!(refusal.message(), format!("secrets \"one\" is forbidden: {words}"));
    assert_eq!(refusal.status["details"], json!({"name": "one", "kind": "secrets"}));
    Ok(())
}
